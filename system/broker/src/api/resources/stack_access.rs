//! Access to one stack, by who asks.

use sindri_model::StackId;
use sindri_model::wire::Stack;

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::broker::Broker;
use crate::store::KeyHolder;

/// A stack that lives and that the actor may read and change.
pub(crate) async fn owned(broker: &Broker, actor: Actor, stack: StackId) -> Result<Stack, Refusal> {
    if let KeyHolder::Agent(_) = actor.0 {
        return Err(Refusal::forbidden());
    }
    let stack = broker.store.get_stack(stack).await?;
    actor.admin_or_this_generator(stack.generator_id)?;
    Ok(stack)
}

/// Sees that the actor may read what belongs to a stack. An agent may if the stack is, or ever was, its business.
pub(crate) async fn readable(broker: &Broker, actor: Actor, stack: StackId) -> Result<(), Refusal> {
    match actor.0 {
        KeyHolder::Agent(agent) if broker.store.is_assigned(agent, stack).await? => Ok(()),
        KeyHolder::Agent(_) => Err(Refusal::forbidden()),
        KeyHolder::Admin | KeyHolder::Generator(_) => owned(broker, actor, stack).await.map(drop),
    }
}
