//! Checks of an actor's access to a stack.

use sindri_model::StackId;
use sindri_model::wire::Stack;

use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::store::KeyHolder;

/// Returns a stack that is not deleted and that the actor may read and change.
pub(crate) async fn load_owned_stack(broker: &Broker, actor: Actor, stack: StackId) -> Result<Stack, ErrorResponse> {
    load_stack(broker, actor, stack, Denial::StackNotOwned).await
}

/// Returns a stack that is not deleted and that the actor may assign to agents.
pub(crate) async fn load_targetable_stack(
    broker: &Broker,
    actor: Actor,
    stack: StackId,
) -> Result<Stack, ErrorResponse> {
    load_stack(broker, actor, stack, Denial::TargetGeneratorMismatch).await
}

async fn load_stack(broker: &Broker, actor: Actor, stack: StackId, denial: Denial) -> Result<Stack, ErrorResponse> {
    if let KeyHolder::Agent(_) = actor.holder {
        return Err(denial.into());
    }
    let stack = broker.store.get_stack(stack).await?;
    actor.check_admin_or_generator(stack.generator_id, denial)?;
    Ok(stack)
}

/// Checks that the actor may read what belongs to a stack. An agent may if the stack is or was assigned to it.
pub(crate) async fn check_stack_readable(broker: &Broker, actor: Actor, stack: StackId) -> Result<(), ErrorResponse> {
    match actor.holder {
        KeyHolder::Agent(agent) if broker.store.is_assigned(agent, stack).await? => Ok(()),
        KeyHolder::Agent(_) => Err(Denial::StackNotAccessible.into()),
        KeyHolder::Admin(_) | KeyHolder::Generator(_) => {
            load_stack(broker, actor, stack, Denial::StackNotAccessible).await.map(drop)
        }
    }
}
