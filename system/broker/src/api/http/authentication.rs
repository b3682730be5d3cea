//! Authentication and authorization.
//!
//! Every route under the API needs a key. The table of routes has the roles that a route accepts; the handler checks
//! with a method of [`Actor`] that it is the right agent or generator.

use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use sindri_model::{AgentId, GeneratorId, Pak};
use tokio::time::Instant;

use super::connection_info::PeerAddress;
use super::denial::Denial;
use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::{KeyHolder, StoreError, StoredKey};
use crate::throttle::ThrottleSource;

/// Holder of the key that a request was sent with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor(pub KeyHolder);

/// The actor in the request log: the short token of its key, which is not secret.
#[derive(Clone, Debug)]
pub(crate) struct ActorLabel(pub String);

/// Authenticates a request before its handler runs.
pub(crate) async fn authenticate(State(broker): State<Broker>, mut request: Request, next: Next) -> Response {
    let source = throttle_source(request.extensions());
    let (key, label) = match identify(&broker, request.headers(), source).await {
        Ok(key_and_label) => key_and_label,
        Err(error) => return error.into_response(),
    };
    if !key.is_active && !request.method().is_safe() {
        return ErrorResponse::from(StoreError::GeneratorInactive).into_response();
    }
    request.extensions_mut().insert(Actor(key.holder));
    let mut response = next.run(request).await;
    response.extensions_mut().insert(label);
    response
}

/// A request that is not authenticated.
pub(crate) enum AuthenticationError {
    Rejected(ErrorResponse),
    TooManyFailures { wait: Duration },
}

impl<E: Into<ErrorResponse>> From<E> for AuthenticationError {
    fn from(error: E) -> Self {
        AuthenticationError::Rejected(error.into())
    }
}

impl IntoResponse for AuthenticationError {
    fn into_response(self) -> Response {
        match self {
            AuthenticationError::Rejected(error) => error.into_response(),
            AuthenticationError::TooManyFailures { wait } => {
                let message = "too many wrong keys were sent from this address";
                let error = ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message);
                ([(RETRY_AFTER, wait.as_secs().saturating_add(1))], error).into_response()
            }
        }
    }
}

async fn identify(
    broker: &Broker,
    headers: &HeaderMap,
    source: Option<ThrottleSource>,
) -> Result<(StoredKey, ActorLabel), AuthenticationError> {
    let header = headers.get(AUTHORIZATION).ok_or_else(|| ErrorResponse::unauthorized("a key is required"))?;
    let Some(credentials) = Credentials::parse(header, source) else { return Err(reject_key(broker, source)) };
    let key = credentials.authenticate(broker).await?;
    Ok((key, credentials.label()))
}

/// Returns the source of a request; `None` without a peer address (simulation), where throttling is skipped.
pub(crate) fn throttle_source(extensions: &Extensions) -> Option<ThrottleSource> {
    extensions.get::<PeerAddress>().and_then(|peer| peer.0).map(ThrottleSource::from_address)
}

/// Key and source of a request.
pub(crate) struct Credentials {
    pak: Pak,
    source: Option<ThrottleSource>,
}

impl Credentials {
    /// Parses the key in an `Authorization` header.
    pub(crate) fn parse(header: &HeaderValue, source: Option<ThrottleSource>) -> Option<Self> {
        let pak = Pak::parse(strip_scheme(header.to_str().ok()?)).ok()?;
        Some(Self { pak, source })
    }

    /// Returns the actor in the request log.
    pub(crate) fn label(&self) -> ActorLabel {
        ActorLabel(self.pak.short().to_owned())
    }

    /// Returns the key as stored, if it is cached.
    pub(crate) fn find_cached(&self, broker: &Broker) -> Option<StoredKey> {
        broker.memory.keys.find(&self.pak)
    }

    /// Returns the key as stored, from the cache if it is there. A wrong key counts against the source.
    pub(crate) async fn authenticate(&self, broker: &Broker) -> Result<StoredKey, AuthenticationError> {
        match self.find_cached(broker) {
            Some(key) => Ok(key),
            None => look_up_key(broker, &self.pak, self.source).await,
        }
    }
}

/// Looks up a key that is not cached.
async fn look_up_key(
    broker: &Broker,
    pak: &Pak,
    source: Option<ThrottleSource>,
) -> Result<StoredKey, AuthenticationError> {
    if let Some(wait) = source.and_then(|source| broker.throttle.check(source, pak.short(), Instant::now())) {
        return Err(too_many_failures(broker, wait));
    }
    let generation = broker.memory.keys.generation();
    let stored = broker.store.find_keys(pak.short().to_owned()).await?;
    let Some(key) = broker.memory.keys.insert(pak, stored, generation) else {
        return Err(reject_key(broker, source));
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
fn reject_key(broker: &Broker, source: Option<ThrottleSource>) -> AuthenticationError {
    match source.and_then(|source| broker.throttle.record_failure(source, Instant::now())) {
        Some(wait) => too_many_failures(broker, wait),
        None => ErrorResponse::unauthorized("the key is unknown").into(),
    }
}

fn too_many_failures(broker: &Broker, wait: Duration) -> AuthenticationError {
    broker.metrics.record_throttled_key();
    AuthenticationError::TooManyFailures { wait }
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ErrorResponse> {
        parts.extensions.get().copied().ok_or_else(|| ErrorResponse::unauthorized("a key is required"))
    }
}

/// The key that a request was sent with.
pub(crate) struct SenderKey(pub Pak);

impl<S: Send + Sync> FromRequestParts<S> for SenderKey {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ErrorResponse> {
        let credentials = parts.headers.get(AUTHORIZATION).and_then(|header| Credentials::parse(header, None));
        credentials.map(|sent| Self(sent.pak)).ok_or_else(|| ErrorResponse::unauthorized("a key is required"))
    }
}

impl Actor {
    /// Checks that the actor is the administrator or this agent.
    pub(crate) fn check_admin_or_agent(self, agent: AgentId) -> Result<(), Denial> {
        require(self.0 == KeyHolder::Admin || self.0 == KeyHolder::Agent(agent), Denial::AgentPakMismatch)
    }

    /// Checks that the actor is this agent.
    pub(crate) fn check_agent(self, agent: AgentId) -> Result<(), Denial> {
        require(self.0 == KeyHolder::Agent(agent), Denial::AgentPakMismatch)
    }

    /// Checks that the actor is the administrator or this generator; `denial` is the reason if it is neither.
    pub(crate) fn check_admin_or_generator(self, generator: GeneratorId, denial: Denial) -> Result<(), Denial> {
        require(self.0 == KeyHolder::Admin || self.0 == KeyHolder::Generator(generator), denial)
    }
}

fn require(is_allowed: bool, denial: Denial) -> Result<(), Denial> {
    if is_allowed { Ok(()) } else { Err(denial) }
}
