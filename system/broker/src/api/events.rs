//! What agents report.

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use sindri_model::wire::{AgentEvent, EventStatus, NewAgentEvent};
use sindri_model::{AgentId, EventId};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids};
use super::targets::mismatch;
use crate::Broker;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
const EVENT_TYPE_CHARS_MAX: usize = 50;

pub(crate) async fn record(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    headers: HeaderMap,
    Body(request): Body<NewAgentEvent>,
) -> Result<(StatusCode, Json<AgentEvent>), Refusal> {
    actor.admin_or_this_agent(agent)?;
    if request.agent_id != agent {
        return Err(mismatch());
    }
    if request.event_type.is_empty() || request.event_type.chars().count() > EVENT_TYPE_CHARS_MAX {
        let message = format!("event_type must have 1 to {EVENT_TYPE_CHARS_MAX} characters");
        return Err(Refusal::bad("invalid_event", message));
    }
    let key = idempotency_key(&headers)?;
    let now = broker.clock.now();
    let event = AgentEvent {
        id: EventId::mint(&broker.entropy),
        created_at: now,
        updated_at: now,
        deleted_at: None,
        agent_id: agent,
        deployment_object_id: request.deployment_object_id,
        event_type: request.event_type,
        status: request.status,
        message: request.message,
    };
    let recorded = broker.store.record_event(event, key).await;
    if request.status == EventStatus::Success {
        // It may have confirmed a removal.
        broker.etags.forget();
    }
    Ok((StatusCode::CREATED, Json(recorded?)))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > IDEMPOTENCY_KEY_CHARS_MAX {
        let message = format!("an Idempotency-Key has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible characters");
        return Err(Refusal::bad("invalid_idempotency_key", message));
    }
    Ok(Some(text.to_owned()))
}

pub(crate) async fn of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<AgentEvent>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.events_of_agent(agent).await?))
}

pub(crate) async fn list(State(broker): State<Broker>, actor: Actor) -> Result<Json<Vec<AgentEvent>>, Refusal> {
    actor.admin()?;
    Ok(Json(broker.store.events().await?))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(event): Ids<EventId>,
) -> Result<Json<AgentEvent>, Refusal> {
    actor.admin()?;
    Ok(Json(broker.store.event(event).await?))
}
