//! Stacks. A generator sees and changes its own only.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sindri_model::StackId;
use sindri_model::wire::{NewStack, Stack};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids, Paged, check_name};
use super::stamp::By;
use crate::Broker;
use crate::store::{KeyHolder, Whose};

pub(crate) async fn create(
    State(broker): State<Broker>,
    actor: Actor,
    By(stamp): By,
    Body(request): Body<NewStack>,
) -> Result<(StatusCode, Json<Stack>), Refusal> {
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
    Ok((StatusCode::CREATED, Json(broker.store.create_stack(stamp, stack).await?)))
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Paged(page): Paged,
) -> Result<Json<Vec<Stack>>, Refusal> {
    let whose = match actor.0 {
        KeyHolder::Admin => Whose::All,
        KeyHolder::Generator(generator) => Whose::Generator(generator),
        KeyHolder::Agent(_) => return Err(Refusal::forbidden()),
    };
    Ok(Json(broker.store.stacks(whose, page).await?))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
) -> Result<Json<Stack>, Refusal> {
    Ok(Json(owned(&broker, actor, stack).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    By(stamp): By,
) -> Result<StatusCode, Refusal> {
    owned(&broker, actor, stack).await?;
    broker.store.delete_stack(stamp, stack).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A stack that lives and that the actor may read and change.
pub(crate) async fn owned(broker: &Broker, actor: Actor, stack: StackId) -> Result<Stack, Refusal> {
    actor.admin_or_generator()?;
    let stack = broker.store.stack(stack).await?;
    actor.admin_or_this_generator(stack.generator_id)?;
    Ok(stack)
}
