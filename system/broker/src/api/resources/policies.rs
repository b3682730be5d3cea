//! How an agent is to treat its stacks, as their annotations say.

use axum::Json;
use axum::extract::State;
use sindri_model::AgentId;
use sindri_model::wire::StackPolicy;

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::Ids;
use crate::broker::Broker;

pub(crate) async fn of_agent(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<StackPolicy>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.list_policies(agent).await?))
}
