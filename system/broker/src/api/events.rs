//! What agents report.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sindri_model::wire::{AgentEvent, NewAgentEvent};
use sindri_model::{AgentId, EventId};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids, Paged};
use super::stamp::By;
use super::targets::mismatch;
use crate::Broker;
use crate::store::Whose;

const EVENT_TYPE_CHARS_MAX: usize = 50;
const STATUS_CHARS_MAX: usize = 10;

pub(crate) async fn record(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
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
    if request.status.as_str().is_empty() || request.status.as_str().chars().count() > STATUS_CHARS_MAX {
        return Err(Refusal::bad("invalid_event", format!("status must have 1 to {STATUS_CHARS_MAX} characters")));
    }
    let event = AgentEvent {
        id: EventId::mint(&broker.entropy),
        created_at: stamp.at,
        updated_at: stamp.at,
        deleted_at: None,
        agent_id: agent,
        deployment_object_id: request.deployment_object_id,
        event_type: request.event_type,
        status: request.status,
        message: request.message,
    };
    Ok((StatusCode::CREATED, Json(broker.store.record_event(stamp, event).await?)))
}

pub(crate) async fn of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Paged(page): Paged,
) -> Result<Json<Vec<AgentEvent>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.events_of_agent(agent, page).await?))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Paged(page): Paged,
) -> Result<Json<Vec<AgentEvent>>, Refusal> {
    actor.admin()?;
    Ok(Json(broker.store.events(Whose::All, page).await?))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(event): Ids<EventId>,
) -> Result<Json<AgentEvent>, Refusal> {
    actor.admin()?;
    Ok(Json(broker.store.event(event).await?))
}
