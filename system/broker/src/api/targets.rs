//! Explicit targets: this stack at this agent.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sindri_model::wire::{AgentTarget, NewAgentTarget};
use sindri_model::{AgentId, LinkId, StackId};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids, Paged};
use super::stacks::owned;
use super::stamp::By;
use crate::Broker;

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Paged(page): Paged,
) -> Result<Json<Vec<AgentTarget>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.targets(agent, page).await?))
}

pub(crate) async fn add(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(request): Body<NewAgentTarget>,
) -> Result<(StatusCode, Json<AgentTarget>), Refusal> {
    actor.admin_or_generator()?;
    if request.agent_id != agent {
        return Err(mismatch());
    }
    owned(&broker, actor, request.stack_id).await?;
    let target = AgentTarget { id: LinkId::mint(&broker.entropy), agent_id: agent, stack_id: request.stack_id };
    Ok((StatusCode::CREATED, Json(broker.store.add_target(stamp, target).await?)))
}

pub(crate) async fn remove(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((agent, stack)): Ids<(AgentId, StackId)>,
    By(stamp): By,
) -> Result<StatusCode, Refusal> {
    owned(&broker, actor, stack).await?;
    broker.store.remove_target(stamp, agent, stack).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The body names another agent than the path.
pub(crate) fn mismatch() -> Refusal {
    Refusal::bad("agent_id_mismatch", "agent_id in the body is not the agent of the path")
}
