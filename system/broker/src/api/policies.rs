//! How an agent is to treat its stacks, as their annotations say.

use axum::Json;
use axum::extract::State;
use sindri_model::AgentId;
use sindri_model::wire::StackPolicy;

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::Ids;
use crate::Broker;

pub(crate) async fn of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<StackPolicy>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.policies(agent).await?))
}
