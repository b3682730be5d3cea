//! History of a stack: its revisions with their numbers, without their bundles.

use axum::extract::State;
use sindri_model::StackId;
use sindri_model::wire::RevisionSummary;

use super::stack_access::load_owned_stack;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::PathParams;
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::broker::Broker;

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    params: ListParams,
) -> Result<ListResponse<Vec<RevisionSummary>>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    let revisions = broker.store.list_history(stack, params.page()).await?;
    Ok(params.respond(revisions, |revision| revision.id))
}
