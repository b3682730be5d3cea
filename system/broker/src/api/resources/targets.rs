//! Explicit targets, which assign a stack to an agent.

use axum::extract::State;
use sindri_model::wire::{AgentTarget, NewAgentTarget};
use sindri_model::{AgentId, LinkId, StackId};

use super::stack_access::load_targetable_stack;
use super::validation::agent_mismatch;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::{Created, NoContent};
use crate::broker::Broker;
use crate::store::WriteContext;

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
) -> Result<ListResponse<Vec<AgentTarget>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let targets = broker.store.list_targets(agent, params.page()).await?;
    Ok(params.respond(targets, |target| target.id))
}

pub(crate) async fn add(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
    JsonBody(request): JsonBody<NewAgentTarget>,
) -> Result<Created<AgentTarget>, ErrorResponse> {
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    load_targetable_stack(&broker, actor, request.stack_id).await?;
    let target = AgentTarget { id: LinkId::generate(&broker.entropy), agent_id: agent, stack_id: request.stack_id };
    Ok(Created(broker.store.add_target(context, target).await?))
}

pub(crate) async fn remove(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((agent, stack)): PathParams<(AgentId, StackId)>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    load_targetable_stack(&broker, actor, stack).await?;
    broker.store.remove_target(context, agent, stack).await?;
    Ok(NoContent)
}
