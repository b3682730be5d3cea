//! Stacks. A generator sees and changes its own only.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sindri_model::wire::{NewStack, Stack};
use sindri_model::{RevisionId, StackId};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids, check_name};
use crate::Broker;
use crate::store::KeyHolder;

pub(crate) async fn create(
    State(broker): State<Broker>,
    actor: Actor,
    Body(request): Body<NewStack>,
) -> Result<(StatusCode, Json<Stack>), Refusal> {
    actor.admin_or_this_generator(request.generator_id)?;
    check_name("name", &request.name)?;
    let now = broker.clock.now();
    let stack = Stack {
        id: StackId::mint(&broker.entropy),
        created_at: now,
        updated_at: now,
        deleted_at: None,
        name: request.name,
        description: request.description,
        generator_id: request.generator_id,
    };
    broker.store.create_stack(stack.clone()).await?;
    Ok((StatusCode::CREATED, Json(stack)))
}

pub(crate) async fn list(State(broker): State<Broker>, actor: Actor) -> Result<Json<Vec<Stack>>, Refusal> {
    let owner = match actor.0 {
        KeyHolder::Admin => None,
        KeyHolder::Generator(generator) => Some(generator),
        KeyHolder::Agent(_) => return Err(Refusal::forbidden()),
    };
    Ok(Json(broker.store.stacks(owner).await?))
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
) -> Result<StatusCode, Refusal> {
    owned(&broker, actor, stack).await?;
    let marker = RevisionId::mint(&broker.entropy);
    let deleted = broker.store.delete_stack(stack, marker, broker.clock.now()).await;
    broker.etags.forget();
    deleted?;
    Ok(StatusCode::NO_CONTENT)
}

/// A stack that lives and that the actor may read and change.
pub(crate) async fn owned(broker: &Broker, actor: Actor, stack: StackId) -> Result<Stack, Refusal> {
    actor.admin_or_generator()?;
    let stack = broker.store.stack(stack).await?;
    actor.admin_or_this_generator(stack.generator_id)?;
    Ok(stack)
}
