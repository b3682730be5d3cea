//! Events with the names of what they are about. A generator gets those about its own stacks.

use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::NamedEvent;
use sindri_model::{AgentId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::QueryParams;
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::broker::Broker;
use crate::store::{EventFilter, EventOrder, KeyHolder};

/// Filter of events.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EventParams {
    /// Only events about this stack.
    stack: Option<StackId>,
    /// Only events of this agent.
    agent: Option<AgentId>,
    /// Only events from this time on.
    since: Option<Timestamp>,
    /// Order of the events; by default the oldest first.
    order: Option<OrderParam>,
}

/// Order of events.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum OrderParam {
    OldestFirst,
    NewestFirst,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    QueryParams(EventParams { stack, agent, since, order }): QueryParams<EventParams>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<NamedEvent>>, ErrorResponse> {
    let generator = match actor.holder {
        KeyHolder::Admin(_) => None,
        KeyHolder::Generator(generator) => Some(generator),
        KeyHolder::Agent(_) => return Err(Denial::GeneratorRequired.into()),
    };
    let order = match order {
        None | Some(OrderParam::OldestFirst) => EventOrder::OldestFirst,
        Some(OrderParam::NewestFirst) => EventOrder::NewestFirst,
    };
    let filter = EventFilter { generator, stack, agent, since, order };
    let events = broker.store.list_named_events(filter, params.page()).await?;
    let message_bytes = |event: &NamedEvent| event.message.as_ref().map_or(0, String::len);
    permit.serialize(&broker, params.respond_sized(events, |event| event.id, message_bytes)).await
}
