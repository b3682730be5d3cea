//! Labels and annotations of agents and of stacks. An agent reads its own, and those of stacks that concern it.

use axum::extract::State;
use sindri_model::wire::{
    AgentAnnotation, AgentLabel, NewAgentAnnotation, NewAgentLabel, NewStackAnnotation, StackAnnotation, StackLabel,
};
use sindri_model::{AgentId, LinkId, StackId};

use super::stack_access::{owned, readable};
use super::validation::{agent_mismatch, check_annotation, check_label, stack_mismatch};
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::By;
use crate::broker::Broker;

pub(crate) async fn of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    paged: Paged,
) -> Result<Listed<Vec<AgentLabel>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let labels = broker.store.list_agent_labels(agent, paged.page()).await?;
    Ok(paged.listed(labels, |label| label.id))
}

pub(crate) async fn add_to_agent(
    State(broker): State<Broker>,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(request): Body<NewAgentLabel>,
) -> Result<Created<AgentLabel>, Refusal> {
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    check_label(&request.label)?;
    let label = AgentLabel { id: LinkId::mint(&broker.entropy), agent_id: agent, label: request.label };
    Ok(Created(broker.store.add_agent_label(stamp, label).await?))
}

pub(crate) async fn remove_from_agent(
    State(broker): State<Broker>,
    Ids((agent, label)): Ids<(AgentId, String)>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    broker.store.remove_agent_label(stamp, agent, label).await?;
    Ok(NoContent)
}

pub(crate) async fn annotations_of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    paged: Paged,
) -> Result<Listed<Vec<AgentAnnotation>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let annotations = broker.store.list_agent_annotations(agent, paged.page()).await?;
    Ok(paged.listed(annotations, |annotation| annotation.id))
}

pub(crate) async fn annotate_agent(
    State(broker): State<Broker>,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(request): Body<NewAgentAnnotation>,
) -> Result<Created<AgentAnnotation>, Refusal> {
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    let NewAgentAnnotation { agent_id, key, value } = request;
    check_annotation(&key, &value)?;
    let annotation = AgentAnnotation { id: LinkId::mint(&broker.entropy), agent_id, key, value };
    Ok(Created(broker.store.add_agent_annotation(stamp, annotation).await?))
}

pub(crate) async fn remove_annotation_from_agent(
    State(broker): State<Broker>,
    Ids((agent, key)): Ids<(AgentId, String)>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    broker.store.remove_agent_annotation(stamp, agent, key).await?;
    Ok(NoContent)
}

pub(crate) async fn of_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    paged: Paged,
) -> Result<Listed<Vec<StackLabel>>, Refusal> {
    readable(&broker, actor, stack).await?;
    let labels = broker.store.list_stack_labels(stack, paged.page()).await?;
    Ok(paged.listed(labels, |label| label.id))
}

/// The body is the label itself.
pub(crate) async fn add_to_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    By(stamp): By,
    Body(label): Body<String>,
) -> Result<Created<StackLabel>, Refusal> {
    owned(&broker, actor, stack).await?;
    check_label(&label)?;
    let label = StackLabel { id: LinkId::mint(&broker.entropy), stack_id: stack, label };
    Ok(Created(broker.store.add_stack_label(stamp, label).await?))
}

pub(crate) async fn remove_from_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((stack, label)): Ids<(StackId, String)>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    owned(&broker, actor, stack).await?;
    broker.store.remove_stack_label(stamp, stack, label).await?;
    Ok(NoContent)
}

pub(crate) async fn annotations_of_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    paged: Paged,
) -> Result<Listed<Vec<StackAnnotation>>, Refusal> {
    readable(&broker, actor, stack).await?;
    let annotations = broker.store.list_stack_annotations(stack, paged.page()).await?;
    Ok(paged.listed(annotations, |annotation| annotation.id))
}

pub(crate) async fn annotate_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    By(stamp): By,
    Body(request): Body<NewStackAnnotation>,
) -> Result<Created<StackAnnotation>, Refusal> {
    owned(&broker, actor, stack).await?;
    if request.stack_id != stack {
        return Err(stack_mismatch());
    }
    let NewStackAnnotation { stack_id, key, value } = request;
    check_annotation(&key, &value)?;
    let annotation = StackAnnotation { id: LinkId::mint(&broker.entropy), stack_id, key, value };
    Ok(Created(broker.store.add_stack_annotation(stamp, annotation).await?))
}

pub(crate) async fn remove_annotation_from_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((stack, key)): Ids<(StackId, String)>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    owned(&broker, actor, stack).await?;
    broker.store.remove_stack_annotation(stamp, stack, key).await?;
    Ok(NoContent)
}
