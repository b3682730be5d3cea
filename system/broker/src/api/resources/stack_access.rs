//! Checks of an actor's access to a stack.

use sindri_model::StackId;
use sindri_model::wire::Stack;

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::KeyHolder;

/// Returns a stack that is not deleted and that the actor may read and change.
pub(crate) async fn load_owned_stack(broker: &Broker, actor: Actor, stack: StackId) -> Result<Stack, ErrorResponse> {
    if let KeyHolder::Agent(_) = actor.0 {
        return Err(ErrorResponse::forbidden());
    }
    let stack = broker.store.get_stack(stack).await?;
    actor.check_admin_or_generator(stack.generator_id)?;
    Ok(stack)
}

/// Checks that the actor may read what belongs to a stack. An agent may if the stack is or was assigned to it.
pub(crate) async fn check_stack_readable(broker: &Broker, actor: Actor, stack: StackId) -> Result<(), ErrorResponse> {
    match actor.0 {
        KeyHolder::Agent(agent) if broker.store.is_assigned(agent, stack).await? => Ok(()),
        KeyHolder::Agent(_) => Err(ErrorResponse::forbidden()),
        KeyHolder::Admin | KeyHolder::Generator(_) => load_owned_stack(broker, actor, stack).await.map(drop),
    }
}
