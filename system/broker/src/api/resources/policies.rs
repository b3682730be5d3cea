//! Policies: annotations of stacks that tell an agent how to treat them.

use axum::Json;
use axum::extract::State;
use sindri_model::AgentId;
use sindri_model::wire::StackPolicy;

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::PathParams;
use crate::broker::Broker;

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
) -> Result<Json<Vec<StackPolicy>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    Ok(Json(broker.store.list_policies(agent).await?))
}
