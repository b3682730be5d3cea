//! Who asks, and what they may do.
//!
//! Every route under the API asks for a key before anything else; the table of routes says which kinds of keys it
//! takes, and the handler, with one of the methods here, whether it is the right one of its kind.

use std::time::Duration;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use sindri_model::{AgentId, GeneratorId, Pak};
use tokio::time::Instant;

use super::connection_info::PeerAddress;
use super::error_response::Refusal;
use crate::broker::Broker;
use crate::store::KeyHolder;
use crate::throttle::Source;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor(pub KeyHolder);

/// The actor as the log shows it: the key's short token, which is no secret.
#[derive(Clone, Debug)]
pub(crate) struct ActorLabel(pub String);

/// Finds out whose key it is, before the handler runs.
pub(crate) async fn authenticate(State(broker): State<Broker>, mut request: Request, next: Next) -> Response {
    // Without an address, as in a simulated world, nobody can be told from anybody, and nobody is slowed down.
    let source = request.extensions().get::<PeerAddress>().and_then(|peer| peer.0).map(Source::of);
    let (actor, label) = match identify(&broker, request.headers(), source).await {
        Ok(known) => known,
        Err(denied) => return denied.into_response(),
    };
    request.extensions_mut().insert(actor);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(label);
    response
}

/// Why nobody is let in.
enum Denied {
    Refused(Refusal),
    TooManyFailures { wait: Duration },
}

impl<R: Into<Refusal>> From<R> for Denied {
    fn from(refusal: R) -> Self {
        Denied::Refused(refusal.into())
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        match self {
            Denied::Refused(refusal) => refusal.into_response(),
            Denied::TooManyFailures { wait } => {
                let message = "too many wrong keys came from this address";
                let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message);
                ([(RETRY_AFTER, wait.as_secs().saturating_add(1))], refusal).into_response()
            }
        }
    }
}

async fn identify(broker: &Broker, headers: &HeaderMap, source: Option<Source>) -> Result<(Actor, ActorLabel), Denied> {
    let header = headers.get(AUTHORIZATION).ok_or_else(|| Refusal::unauthorized("a key is needed"))?;
    let Some(pak) = key_in(header) else { return Err(wrong_key(broker, source)) };
    let holder = match broker.memory.keys.holder(&pak) {
        Some(holder) => holder,
        None => look_up(broker, &pak, source).await?,
    };
    Ok((Actor(holder), ActorLabel(pak.short().to_owned())))
}

/// A key that was not used lately.
async fn look_up(broker: &Broker, pak: &Pak, source: Option<Source>) -> Result<KeyHolder, Denied> {
    if let Some(wait) = source.and_then(|source| broker.throttle.refuses(source, pak.short(), Instant::now())) {
        return Err(too_many_failures(broker, wait));
    }
    let asked = broker.memory.keys.asked();
    let known = broker.store.find_keys(pak.short().to_owned()).await?;
    let Some(holder) = broker.memory.keys.learn(pak, known, asked) else { return Err(wrong_key(broker, source)) };
    if source.is_some() {
        broker.throttle.succeeded(pak.short());
    }
    Ok(holder)
}

/// The key that a header shows, if it is one.
pub(crate) fn key_in(header: &HeaderValue) -> Option<Pak> {
    Pak::parse(without_scheme(header.to_str().ok()?)).ok()
}

/// The key, with or without `Bearer` before it. Schemes have no case.
fn without_scheme(text: &str) -> &str {
    match text.trim().split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        _ => text.trim(),
    }
}

/// The same words for every wrong key: nothing says which part of it was right.
fn wrong_key(broker: &Broker, source: Option<Source>) -> Denied {
    match source.and_then(|source| broker.throttle.failed(source, Instant::now())) {
        Some(wait) => too_many_failures(broker, wait),
        None => Refusal::unauthorized("the key is not known").into(),
    }
}

fn too_many_failures(broker: &Broker, wait: Duration) -> Denied {
    broker.metrics.key_throttled();
    Denied::TooManyFailures { wait }
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        parts.extensions.get().copied().ok_or_else(|| Refusal::unauthorized("a key is needed"))
    }
}

impl Actor {
    /// The administrator, or this agent.
    pub(crate) fn admin_or_this_agent(self, agent: AgentId) -> Result<(), Refusal> {
        allow(self.0 == KeyHolder::Admin || self.0 == KeyHolder::Agent(agent))
    }

    /// This agent only.
    pub(crate) fn this_agent(self, agent: AgentId) -> Result<(), Refusal> {
        allow(self.0 == KeyHolder::Agent(agent))
    }

    /// The administrator, or this generator.
    pub(crate) fn admin_or_this_generator(self, generator: GeneratorId) -> Result<(), Refusal> {
        allow(self.0 == KeyHolder::Admin || self.0 == KeyHolder::Generator(generator))
    }
}

fn allow(allowed: bool) -> Result<(), Refusal> {
    if allowed { Ok(()) } else { Err(Refusal::forbidden()) }
}
