//! Events: the outcomes that agents report.

use axum::Json;
use axum::extract::State;
use sindri_model::limits::{EVENT_STATUS_CHARS_MAX, EVENT_TYPE_CHARS_MAX};
use sindri_model::wire::{AgentEvent, NewAgentEvent};
use sindri_model::{AgentId, EventId, StackId};

use super::owner_filter::OwnerFilter;
use super::stack_access::check_stack_readable;
use super::validation::agent_mismatch;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams, QueryParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::Created;
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::KeyHolder;

/// Limit of a message. The rest is cut off, because an outcome must not be lost for the length of its message.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

pub(crate) async fn record(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    CreateContext(context): CreateContext,
    JsonBody(request): JsonBody<NewAgentEvent>,
) -> Result<Created<AgentEvent>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    if request.event_type.is_empty() || request.event_type.chars().count() > EVENT_TYPE_CHARS_MAX {
        let message = format!("event_type must have 1 to {EVENT_TYPE_CHARS_MAX} characters");
        return Err(ErrorResponse::bad_request("invalid_event", message));
    }
    if request.status.as_str().is_empty() || request.status.as_str().chars().count() > EVENT_STATUS_CHARS_MAX {
        return Err(ErrorResponse::bad_request(
            "invalid_event",
            format!("status must have 1 to {EVENT_STATUS_CHARS_MAX} characters"),
        ));
    }
    let event = AgentEvent {
        id: EventId::generate_at(context.time, &broker.entropy),
        created_at: context.time,
        updated_at: context.time,
        deleted_at: None,
        agent_id: agent,
        deployment_object_id: request.deployment_object_id,
        event_type: request.event_type,
        status: request.status,
        message: request.message.map(cut_message),
    };
    Ok(Created(broker.store.record_event(context, event).await?))
}

/// Cuts off the end of a message that is too long, between two characters.
fn cut_message(mut message: String) -> String {
    const END: &str = "…";
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX - END.len()));
        message.push_str(END);
    }
    message
}

fn message_bytes(event: &AgentEvent) -> usize {
    event.message.as_ref().map_or(0, String::len)
}

pub(crate) async fn list_for_agent(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<AgentEvent>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let events = broker.store.list_events_of_agent(agent, params.page()).await?;
    permit.serialize(&broker, params.respond_sized(events, |event| event.id, message_bytes)).await
}

/// Lists the events about a stack. An agent sees only its own.
pub(crate) async fn list_for_stack(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<AgentEvent>>, ErrorResponse> {
    check_stack_readable(&broker, actor, stack).await?;
    let agent = match actor.holder {
        KeyHolder::Agent(agent) => Some(agent),
        KeyHolder::Admin(_) | KeyHolder::Generator(_) => None,
    };
    let events = broker.store.list_events_of_stack(stack, agent, params.page()).await?;
    permit.serialize(&broker, params.respond_sized(events, |event| event.id, message_bytes)).await
}

/// Lists the outcomes that a restarted agent need not report again, at most one per stack of its target state.
pub(crate) async fn list_outcomes(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<AgentEvent>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let events = broker.store.list_outcomes(agent, params.page()).await?;
    permit.serialize(&broker, params.respond_sized(events, |event| event.id, message_bytes)).await
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    QueryParams(filter): QueryParams<OwnerFilter>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<AgentEvent>>, ErrorResponse> {
    let events = broker.store.list_events(filter.scope(), params.page()).await?;
    permit.serialize(&broker, params.respond_sized(events, |event| event.id, message_bytes)).await
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    PathParams(event): PathParams<EventId>,
) -> Result<Json<AgentEvent>, ErrorResponse> {
    Ok(Json(broker.store.get_event(event).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        let exact = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(cut_message(exact.clone()), exact);
        let cut = cut_message("ü".repeat(MESSAGE_BYTES_MAX));
        assert!(cut.len() <= MESSAGE_BYTES_MAX && cut.ends_with("ü…"), "{}", cut.len());
    }
}
