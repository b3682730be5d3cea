//! Labels and annotations of agents and stacks. An agent may read its own and those of stacks that are or were assigned
//! to it.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::limits::{LABEL_CHARS_MAX, WORD_PATTERN};
use sindri_model::wire::{
    AgentAnnotation, AgentLabel, AnnotationValue, NewAgentAnnotation, NewAgentLabel, NewStackAnnotation,
    StackAnnotation, StackLabel,
};
use sindri_model::{AgentId, LinkId, StackId};

use super::stack_access::{check_stack_readable, load_owned_stack};
use super::validation::{agent_mismatch, check_annotation, check_label, stack_mismatch};
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::{Created, NoContent};
use crate::broker::Broker;
use crate::store::WriteContext;

pub(crate) async fn list_agent_labels(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
) -> Result<ListResponse<Vec<AgentLabel>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let labels = broker.store.list_agent_labels(agent, params.page()).await?;
    Ok(params.respond(labels, |label| label.id))
}

pub(crate) async fn add_agent_label(
    State(broker): State<Broker>,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
    JsonBody(request): JsonBody<NewAgentLabel>,
) -> Result<Created<AgentLabel>, ErrorResponse> {
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    check_label(&request.label)?;
    let label = AgentLabel { id: LinkId::generate(&broker.entropy), agent_id: agent, label: request.label };
    Ok(Created(broker.store.add_agent_label(context, label).await?))
}

pub(crate) async fn remove_agent_label(
    State(broker): State<Broker>,
    PathParams((agent, label)): PathParams<(AgentId, String)>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    broker.store.remove_agent_label(context, agent, label).await?;
    Ok(NoContent)
}

pub(crate) async fn list_agent_annotations(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<AgentAnnotation>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let annotations = broker.store.list_agent_annotations(agent, params.page()).await?;
    let bytes = |annotation: &AgentAnnotation| annotation.key.len() + annotation.value.len();
    permit.serialize(&broker, params.respond_sized(annotations, |annotation| annotation.id, bytes)).await
}

pub(crate) async fn add_agent_annotation(
    State(broker): State<Broker>,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
    JsonBody(request): JsonBody<NewAgentAnnotation>,
) -> Result<Created<AgentAnnotation>, ErrorResponse> {
    if request.agent_id != agent {
        return Err(agent_mismatch());
    }
    let NewAgentAnnotation { agent_id, key, value } = request;
    check_annotation(&key, &value)?;
    let annotation = AgentAnnotation { id: LinkId::generate(&broker.entropy), agent_id, key, value };
    Ok(Created(broker.store.add_agent_annotation(context, annotation).await?))
}

/// Adds an annotation, or replaces its value.
pub(crate) async fn set_agent_annotation(
    State(broker): State<Broker>,
    PathParams((agent_id, key)): PathParams<(AgentId, String)>,
    context: WriteContext,
    JsonBody(AnnotationValue { value }): JsonBody<AnnotationValue>,
) -> Result<Json<AgentAnnotation>, ErrorResponse> {
    check_annotation(&key, &value)?;
    let annotation = AgentAnnotation { id: LinkId::generate(&broker.entropy), agent_id, key, value };
    Ok(Json(broker.store.set_agent_annotation(context, annotation).await?))
}

pub(crate) async fn remove_agent_annotation(
    State(broker): State<Broker>,
    PathParams((agent, key)): PathParams<(AgentId, String)>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    broker.store.remove_agent_annotation(context, agent, key).await?;
    Ok(NoContent)
}

pub(crate) async fn list_stack_labels(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    params: ListParams,
) -> Result<ListResponse<Vec<StackLabel>>, ErrorResponse> {
    check_stack_readable(&broker, actor, stack).await?;
    let labels = broker.store.list_stack_labels(stack, params.page()).await?;
    Ok(params.respond(labels, |label| label.id))
}

/// A label as a JSON string.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Label(#[schemars(length(min = 1, max = LABEL_CHARS_MAX), regex(pattern = WORD_PATTERN))] String);

/// Adds a label; the body is the label itself as a JSON string.
pub(crate) async fn add_stack_label(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    context: WriteContext,
    JsonBody(Label(label)): JsonBody<Label>,
) -> Result<Created<StackLabel>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    check_label(&label)?;
    let label = StackLabel { id: LinkId::generate(&broker.entropy), stack_id: stack, label };
    Ok(Created(broker.store.add_stack_label(context, label).await?))
}

pub(crate) async fn remove_stack_label(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((stack, label)): PathParams<(StackId, String)>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    broker.store.remove_stack_label(context, stack, label).await?;
    Ok(NoContent)
}

pub(crate) async fn list_stack_annotations(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<StackAnnotation>>, ErrorResponse> {
    check_stack_readable(&broker, actor, stack).await?;
    let annotations = broker.store.list_stack_annotations(stack, params.page()).await?;
    let bytes = |annotation: &StackAnnotation| annotation.key.len() + annotation.value.len();
    permit.serialize(&broker, params.respond_sized(annotations, |annotation| annotation.id, bytes)).await
}

pub(crate) async fn add_stack_annotation(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    context: WriteContext,
    JsonBody(request): JsonBody<NewStackAnnotation>,
) -> Result<Created<StackAnnotation>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    if request.stack_id != stack {
        return Err(stack_mismatch());
    }
    let NewStackAnnotation { stack_id, key, value } = request;
    check_annotation(&key, &value)?;
    let annotation = StackAnnotation { id: LinkId::generate(&broker.entropy), stack_id, key, value };
    Ok(Created(broker.store.add_stack_annotation(context, annotation).await?))
}

/// Adds an annotation, or replaces its value.
pub(crate) async fn set_stack_annotation(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((stack_id, key)): PathParams<(StackId, String)>,
    context: WriteContext,
    JsonBody(AnnotationValue { value }): JsonBody<AnnotationValue>,
) -> Result<Json<StackAnnotation>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack_id).await?;
    check_annotation(&key, &value)?;
    let annotation = StackAnnotation { id: LinkId::generate(&broker.entropy), stack_id, key, value };
    Ok(Json(broker.store.set_stack_annotation(context, annotation).await?))
}

pub(crate) async fn remove_stack_annotation(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((stack, key)): PathParams<(StackId, String)>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    broker.store.remove_stack_annotation(context, stack, key).await?;
    Ok(NoContent)
}
