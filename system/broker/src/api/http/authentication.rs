//! Authentication and authorization.
//!
//! Every route under the API needs a key. The table of routes has the roles that a route accepts; the handler checks
//! with a method of [`Actor`] that it is the right agent or generator.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use hyper::body::Body as _;
use sindri_model::{AgentId, GeneratorId, Pak};
use tokio::time::Instant;

use super::connection_info::{CloseConnection, KeyAcceptedFlag, PeerAddress};
use super::denial::Denial;
use super::error_response::ErrorResponse;
use super::held_body::HeldBody;
use super::login_failures::{record_failure, reject_credential, too_many_failures};
use super::people::identify_person;
use super::request_limits::{count_request, hold_body};
use crate::broker::Broker;
use crate::oidc::is_token;
use crate::store::{KeyAccess, KeyHolder, LoginFailure, StoreError, StoredKey};
use crate::throttle::ThrottleSource;

/// Holder of the key that a request was sent with, and what the key allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub holder: KeyHolder,
    pub access: KeyAccess,
}

/// The actor in the request log: the short token of its key, which is not secret.
#[derive(Clone, Debug)]
pub(crate) struct ActorLabel(pub String);

/// Authenticates a request before its handler runs.
pub(crate) async fn authenticate(State(broker): State<Broker>, mut request: Request, next: Next) -> Response {
    let client = client_address(request.extensions());
    let (actor, label) = match identify(&broker, request.headers(), client).await {
        Ok(actor_and_label) => actor_and_label,
        Err(error) => return error.into_response(),
    };
    if let Some(flag) = request.extensions().get::<KeyAcceptedFlag>() {
        flag.set();
    }
    if let Err(error) = count_request(&broker, actor.holder) {
        return error.into_response();
    }
    let close: CloseConnection = request.extensions().get().cloned().unwrap_or_default();
    let permit = match hold_body(&broker, actor.holder, request.body().size_hint(), close).await {
        Ok(permit) => permit,
        Err(error) => return error.into_response(),
    };
    let _permit = permit.map(|permit| {
        let (permit, open) = permit.split();
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(HeldBody::new(body, open));
        permit
    });
    request.extensions_mut().insert(actor);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(label);
    response
}

async fn identify(
    broker: &Broker,
    headers: &HeaderMap,
    client: Option<IpAddr>,
) -> Result<(Actor, ActorLabel), ErrorResponse> {
    check_freshness(broker)?;
    let header = headers.get(AUTHORIZATION).ok_or_else(|| ErrorResponse::unauthorized("a key is required"))?;
    if let Some(provider) = &broker.oidc
        && let Some(token) = header.to_str().ok().map(strip_scheme).filter(|text| is_token(text))
    {
        // Boxed, because most requests have a key.
        let (holder, access, name) = Box::pin(identify_person(broker, provider, token, client)).await?;
        return Ok((Actor { holder, access }, ActorLabel(name)));
    }
    let Some(credentials) = Credentials::parse(header, client) else {
        record_failure(broker, client, None, LoginFailure::Malformed);
        return Err(reject_key(broker, client, None));
    };
    let key = credentials.authenticate(broker).await?;
    Ok((Actor { holder: key.holder, access: key.access }, credentials.label()))
}

/// Rejects every request while the store of several brokers does not respond: keys may have been revoked, and target states
/// changed.
pub(crate) fn check_freshness(broker: &Broker) -> Result<(), ErrorResponse> {
    if broker.memory.freshness.is_lost() { Err(StoreError::Unavailable.into()) } else { Ok(()) }
}

/// Returns the address of the client; `None` without a peer address (simulation), where throttling is skipped.
pub(crate) fn client_address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<PeerAddress>().and_then(|peer| peer.0)
}

/// Key and client of a request.
pub(crate) struct Credentials {
    pak: Pak,
    client: Option<IpAddr>,
}

impl Credentials {
    /// Parses the key in an `Authorization` header.
    pub(crate) fn parse(header: &HeaderValue, client: Option<IpAddr>) -> Option<Self> {
        let pak = Pak::parse(strip_scheme(header.to_str().ok()?)).ok()?;
        Some(Self { pak, client })
    }

    /// Returns the actor in the request log.
    pub(crate) fn label(&self) -> ActorLabel {
        ActorLabel(self.pak.short().to_owned())
    }

    /// Returns the key as stored, if it is cached and has not expired.
    pub(crate) fn find_cached(&self, broker: &Broker) -> Option<StoredKey> {
        check_freshness(broker).ok()?;
        broker.memory.keys.find(&self.pak).filter(|key| !has_expired(broker, key))
    }

    /// Returns the key as stored, from the cache if it is there. A wrong key counts against its source.
    pub(crate) async fn authenticate(&self, broker: &Broker) -> Result<StoredKey, ErrorResponse> {
        check_freshness(broker)?;
        let key = match broker.memory.keys.find(&self.pak) {
            Some(key) => key,
            None => look_up_key(broker, &self.pak, self.client).await?,
        };
        if has_expired(broker, &key) {
            record_failure(broker, self.client, Some(&self.pak), LoginFailure::Expired);
            let message = "this key has expired; an administrator can replace it";
            return Err(ErrorResponse::new(StatusCode::UNAUTHORIZED, "key_expired", message));
        }
        Ok(key)
    }
}

/// Returns true if a key has expired. The clock is read only for a key that has an end.
fn has_expired(broker: &Broker, key: &StoredKey) -> bool {
    key.expires_at.is_some() && key.has_expired(broker.clock.now())
}

/// Looks up a key that is not cached.
async fn look_up_key(broker: &Broker, pak: &Pak, client: Option<IpAddr>) -> Result<StoredKey, ErrorResponse> {
    let source = client.map(ThrottleSource::from_address);
    let find_wait = || source.and_then(|source| broker.throttle.check(source, pak.short(), Instant::now()));
    if let Some(wait) = find_wait()
        && (!broker.reload_known_keys().await? || find_wait().is_some())
    {
        return Err(too_many_failures(broker, wait));
    }
    let generation = broker.memory.keys.generation();
    let stored = broker.store.find_keys(pak.short().to_owned()).await?;
    let Some(key) = broker.memory.keys.insert(pak, stored, generation) else {
        record_failure(broker, client, Some(pak), LoginFailure::Unknown);
        return Err(reject_key(broker, client, Some(pak)));
    };
    if source.is_some() {
        broker.throttle.record_success(pak.short());
    }
    Ok(key)
}

/// Removes the scheme `Bearer`, if there is one, in any case.
fn strip_scheme(text: &str) -> &str {
    match text.trim().split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        _ => text.trim(),
    }
}

/// Counts a wrong key and returns its error. The message is the same for every wrong key, so that it does not show which
/// part of a guess was right.
fn reject_key(broker: &Broker, client: Option<IpAddr>, pak: Option<&Pak>) -> ErrorResponse {
    reject_credential(broker, client, pak, ErrorResponse::unauthorized("the key is unknown"))
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ErrorResponse> {
        parts.extensions.get().copied().ok_or_else(|| ErrorResponse::unauthorized("a key is required"))
    }
}

/// The key that a request was sent with; none if it was sent with the token of a person.
pub(crate) struct SenderKey(pub Option<Pak>);

impl<S: Send + Sync> FromRequestParts<S> for SenderKey {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ErrorResponse> {
        let credentials = parts.headers.get(AUTHORIZATION).and_then(|header| Credentials::parse(header, None));
        Ok(Self(credentials.map(|sent| sent.pak)))
    }
}

impl Actor {
    /// Returns true if the actor is an administrator. A key that only reads was refused before the handler if the route changes something.
    pub(crate) fn is_admin(self) -> bool {
        matches!(self.holder, KeyHolder::Admin(_))
    }

    /// Checks that the actor is the administrator or this agent.
    pub(crate) fn check_admin_or_agent(self, agent: AgentId) -> Result<(), Denial> {
        require(self.is_admin() || self.holder == KeyHolder::Agent(agent), Denial::AgentPakMismatch)
    }

    /// Checks that the actor is this agent.
    pub(crate) fn check_agent(self, agent: AgentId) -> Result<(), Denial> {
        require(self.holder == KeyHolder::Agent(agent), Denial::AgentPakMismatch)
    }

    /// Checks that the actor is the administrator or this generator; `denial` is the reason if it is neither.
    pub(crate) fn check_admin_or_generator(self, generator: GeneratorId, denial: Denial) -> Result<(), Denial> {
        require(self.is_admin() || self.holder == KeyHolder::Generator(generator), denial)
    }
}

fn require(is_allowed: bool, denial: Denial) -> Result<(), Denial> {
    if is_allowed { Ok(()) } else { Err(denial) }
}
