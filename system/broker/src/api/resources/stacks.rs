//! Stacks. A generator sees and changes its own only.

use axum::Json;
use axum::extract::State;
use sindri_model::StackId;
use sindri_model::wire::{NewStack, Stack, UpdateStackRequest};

use super::owner_filter::ByKey;
use super::stack_access::owned;
use super::validation::{check_name, check_new_name, stack_mismatch};
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Asked, Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::store::{KeyHolder, ListScope};

pub(crate) async fn create(
    State(broker): State<Broker>,
    actor: Actor,
    By(stamp): By,
    Body(request): Body<NewStack>,
) -> Result<Created<Stack>, Refusal> {
    actor.admin_or_this_generator(request.generator_id)?;
    check_name("name", &request.name)?;
    let stack = Stack {
        id: StackId::mint(&broker.entropy),
        created_at: stamp.at,
        updated_at: stamp.at,
        deleted_at: None,
        name: request.name,
        description: request.description,
        generator_id: request.generator_id,
    };
    Ok(Created(broker.store.create_stack(stamp, stack).await?))
}

/// A generator sees its own whatever it asks for.
pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Asked(by_key): Asked<ByKey>,
    paged: Paged,
) -> Result<Listed<Vec<Stack>>, Refusal> {
    let whose = match actor.0 {
        KeyHolder::Admin => by_key.whose(),
        KeyHolder::Generator(generator) => ListScope::Generator(generator),
        KeyHolder::Agent(_) => return Err(Refusal::forbidden()),
    };
    let stacks = broker.store.list_stacks(whose, paged.page()).await?;
    Ok(paged.listed(stacks, |stack| stack.id))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
) -> Result<Json<Stack>, Refusal> {
    Ok(Json(owned(&broker, actor, stack).await?))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    By(stamp): By,
    Body(changes): Body<UpdateStackRequest>,
) -> Result<Json<Stack>, Refusal> {
    owned(&broker, actor, stack).await?;
    if changes.id.is_some_and(|id| id != stack) {
        return Err(stack_mismatch());
    }
    check_new_name("name", changes.name.as_deref())?;
    Ok(Json(broker.store.update_stack(stamp, stack, changes).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    owned(&broker, actor, stack).await?;
    broker.store.delete_stack(stamp, stack).await?;
    Ok(NoContent)
}
