//! Stacks. A generator reads and changes only its own.

use axum::Json;
use axum::extract::State;
use sindri_model::StackId;
use sindri_model::wire::{NewStack, Stack, UpdateStackRequest};

use super::owner_filter::OwnerFilter;
use super::quota_checks::check_new_stack;
use super::stack_access::load_owned_stack;
use super::validation::{check_description, check_name, check_optional, stack_mismatch};
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams, QueryParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::{KeyHolder, ListScope, WriteContext};

pub(crate) async fn create(
    State(broker): State<Broker>,
    actor: Actor,
    CreateContext(context): CreateContext,
    JsonBody(request): JsonBody<NewStack>,
) -> Result<Created<Stack>, ErrorResponse> {
    actor.check_admin_or_generator(request.generator_id, Denial::StackGeneratorMismatch)?;
    check_name("name", &request.name)?;
    check_description(request.description.as_deref())?;
    check_new_stack(&broker, actor).await?;
    let stack = Stack {
        id: StackId::generate(&broker.entropy),
        created_at: context.time,
        updated_at: context.time,
        deleted_at: None,
        name: request.name,
        description: request.description,
        generator_id: request.generator_id,
    };
    Ok(Created(broker.store.create_stack(context, stack).await?))
}

/// Lists stacks. A generator always gets its own only.
pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    QueryParams(filter): QueryParams<OwnerFilter>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<Stack>>, ErrorResponse> {
    let scope = match actor.holder {
        KeyHolder::Admin(_) => filter.scope(),
        KeyHolder::Generator(generator) => ListScope::Generator(generator),
        KeyHolder::Agent(_) => return Err(Denial::StacksListDenied.into()),
    };
    let stacks = broker.store.list_stacks(scope, params.page()).await?;
    permit.serialize(&broker, params.respond_sized(stacks, |stack| stack.id, description_bytes)).await
}

/// Returns the size of the description of a stack.
pub(crate) fn description_bytes(stack: &Stack) -> usize {
    stack.description.as_ref().map_or(0, String::len)
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
) -> Result<Json<Stack>, ErrorResponse> {
    Ok(Json(load_owned_stack(&broker, actor, stack).await?))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    context: WriteContext,
    JsonBody(changes): JsonBody<UpdateStackRequest>,
) -> Result<Json<Stack>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    if changes.id.is_some_and(|id| id != stack) {
        return Err(stack_mismatch());
    }
    check_optional(changes.name.as_deref(), |name| check_name("name", name))?;
    check_description(changes.description.as_deref())?;
    Ok(Json(broker.store.update_stack(context, stack, changes).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    broker.store.delete_stack(context, stack).await?;
    Ok(NoContent)
}
