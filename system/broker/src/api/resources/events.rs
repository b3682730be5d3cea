//! What agents report.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{AgentEvent, NewAgentEvent};
use sindri_model::{AgentId, EventId};

use super::owner_filter::ByKey;
use super::validation::agent_mismatch;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Asked, Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::Created;
use crate::api::http::write_context::By;
use crate::broker::Broker;

const EVENT_TYPE_CHARS_MAX: usize = 50;
const STATUS_CHARS_MAX: usize = 10;

pub(crate) async fn record(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(request): Body<NewAgentEvent>,
) -> Result<Created<AgentEvent>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    if request.event_type.is_empty() || request.event_type.chars().count() > EVENT_TYPE_CHARS_MAX {
        let message = format!("event_type must have 1 to {EVENT_TYPE_CHARS_MAX} characters");
        return Err(Refusal::bad("invalid_event", message));
    }
    if request.status.as_str().is_empty() || request.status.as_str().chars().count() > STATUS_CHARS_MAX {
        return Err(Refusal::bad("invalid_event", format!("status must have 1 to {STATUS_CHARS_MAX} characters")));
    }
    let event = AgentEvent {
        id: EventId::mint_at(stamp.at, &broker.entropy),
        created_at: stamp.at,
        updated_at: stamp.at,
        deleted_at: None,
        agent_id: agent,
        deployment_object_id: request.deployment_object_id,
        event_type: request.event_type,
        status: request.status,
        message: request.message,
    };
    Ok(Created(broker.store.record_event(stamp, event).await?))
}

pub(crate) async fn of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    paged: Paged,
) -> Result<Listed<Vec<AgentEvent>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let events = broker.store.list_events_of_agent(agent, paged.page()).await?;
    Ok(paged.listed(events, |event| event.id))
}

/// What an agent that begins anew need not say again. As many at most as there are stacks in its target state.
pub(crate) async fn outcomes(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<AgentEvent>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.list_outcomes(agent).await?))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    Asked(by_key): Asked<ByKey>,
    paged: Paged,
) -> Result<Listed<Vec<AgentEvent>>, Refusal> {
    let events = broker.store.list_events(by_key.whose(), paged.page()).await?;
    Ok(paged.listed(events, |event| event.id))
}

pub(crate) async fn read(State(broker): State<Broker>, Ids(event): Ids<EventId>) -> Result<Json<AgentEvent>, Refusal> {
    Ok(Json(broker.store.get_event(event).await?))
}
