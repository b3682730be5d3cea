//! Who asks, and what they may do.
//!
//! Every route under the API asks for a key before anything else; each handler then says which roles it
//! takes, with one of the methods here.

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sindri_model::{AgentId, GeneratorId, Pak};

use super::answer::Refusal;
use crate::Broker;
use crate::store::KeyHolder;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor(pub KeyHolder);

/// The actor as the log shows it: the key's short token, which is no secret.
#[derive(Clone, Debug)]
pub(crate) struct ActorLabel(pub String);

/// Finds out whose key it is, before the handler runs.
pub(crate) async fn authenticate(State(broker): State<Broker>, mut request: Request, next: Next) -> Response {
    let (actor, label) = match identify(&broker, request.headers()).await {
        Ok(known) => known,
        Err(refusal) => return refusal.into_response(),
    };
    request.extensions_mut().insert(actor);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(label);
    response
}

async fn identify(broker: &Broker, headers: &HeaderMap) -> Result<(Actor, ActorLabel), Refusal> {
    let header = headers.get(AUTHORIZATION).ok_or_else(|| Refusal::unauthorized("a key is needed"))?;
    let text = header.to_str().map_err(|_| wrong_key())?;
    let pak = Pak::parse(without_scheme(text)).map_err(|_| wrong_key())?;
    let holder = match broker.memory.keys.holder(&pak) {
        Some(holder) => holder,
        None => look_up(broker, &pak).await?,
    };
    Ok((Actor(holder), ActorLabel(pak.short().to_owned())))
}

async fn look_up(broker: &Broker, pak: &Pak) -> Result<KeyHolder, Refusal> {
    let asked = broker.memory.keys.asked();
    let known = broker.store.keys(pak.short().to_owned()).await?;
    broker.memory.keys.learn(pak, known, asked).ok_or_else(wrong_key)
}

/// The key, with or without `Bearer` before it. Schemes have no case.
fn without_scheme(text: &str) -> &str {
    match text.trim().split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        _ => text.trim(),
    }
}

/// The same words for every wrong key: nothing says which part of it was right.
fn wrong_key() -> Refusal {
    Refusal::unauthorized("the key is not known")
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        parts.extensions.get().copied().ok_or_else(|| Refusal::unauthorized("a key is needed"))
    }
}

impl Actor {
    /// The administrator only.
    pub(crate) fn admin(self) -> Result<(), Refusal> {
        allow(self.0 == KeyHolder::Admin)
    }

    /// The administrator, or any generator.
    pub(crate) fn admin_or_generator(self) -> Result<(), Refusal> {
        allow(matches!(self.0, KeyHolder::Admin | KeyHolder::Generator(_)))
    }

    /// The administrator, or any agent.
    pub(crate) fn admin_or_agent(self) -> Result<(), Refusal> {
        allow(matches!(self.0, KeyHolder::Admin | KeyHolder::Agent(_)))
    }

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
