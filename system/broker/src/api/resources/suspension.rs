//! Clusters on which a stack is suspended: changed by the names of their agents, in one step.

use axum::Json;
use axum::extract::State;
use sindri_model::StackId;
use sindri_model::limits::SUSPENSION_AGENTS_MAX;
use sindri_model::policy::Suspension;
use sindri_model::wire::{StackSuspension, SuspensionChange};

use super::stack_access::load_owned_stack;
use super::validation::check_agent_name;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::broker::Broker;
use crate::store::WriteContext;

pub(crate) async fn change(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    context: WriteContext,
    JsonBody(change): JsonBody<SuspensionChange>,
) -> Result<Json<StackSuspension>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    if change.suspend.len().max(change.resume.len()) > SUSPENSION_AGENTS_MAX {
        let message = format!("a request may name {SUSPENSION_AGENTS_MAX} agents in each list");
        return Err(ErrorResponse::bad_request("too_many_agents", message));
    }
    change.suspend.iter().chain(&change.resume).try_for_each(|name| check_agent_name("the name of an agent", name))?;
    let suspension = broker.store.change_suspension(context, stack, change).await?;
    Ok(Json(match suspension {
        Suspension::Everywhere(everywhere) => StackSuspension { everywhere, agents: Vec::new() },
        Suspension::Agents(agents) => StackSuspension { everywhere: false, agents },
    }))
}
