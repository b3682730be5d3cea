//! Explicit targets: this stack at this agent.

use axum::extract::State;
use sindri_model::wire::{AgentTarget, NewAgentTarget};
use sindri_model::{AgentId, LinkId, StackId};

use super::stack_access::owned;
use super::validation::agent_mismatch;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::By;
use crate::broker::Broker;

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    paged: Paged,
) -> Result<Listed<Vec<AgentTarget>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let targets = broker.store.list_targets(agent, paged.page()).await?;
    Ok(paged.listed(targets, |target| target.id))
}

pub(crate) async fn add(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(request): Body<NewAgentTarget>,
) -> Result<Created<AgentTarget>, Refusal> {
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    owned(&broker, actor, request.stack_id).await?;
    let target = AgentTarget { id: LinkId::mint(&broker.entropy), agent_id: agent, stack_id: request.stack_id };
    Ok(Created(broker.store.add_target(stamp, target).await?))
}

pub(crate) async fn remove(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((agent, stack)): Ids<(AgentId, StackId)>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    owned(&broker, actor, stack).await?;
    broker.store.remove_target(stamp, agent, stack).await?;
    Ok(NoContent)
}
