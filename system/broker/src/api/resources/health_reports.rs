//! Health of applied revisions, as agents report it.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{
    DeploymentHealth, DeploymentHealthResponse, HealthStatus, HealthStatusUpdate, StackHealthResponse,
};
use sindri_model::{AgentId, RevisionId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::response::EmptyObject;
use crate::broker::Broker;
use crate::store::WriteContext;

/// Limit on the revisions in one report.
const REVISIONS_MAX: usize = 1_000;

pub(crate) async fn report(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
    JsonBody(update): JsonBody<HealthStatusUpdate>,
) -> Result<Json<EmptyObject>, ErrorResponse> {
    actor.check_agent(agent)?;
    if update.deployment_objects.len() > REVISIONS_MAX {
        let message = format!("a report must have at most {REVISIONS_MAX} deployment objects");
        return Err(ErrorResponse::bad_request("invalid_health_status", message));
    }
    broker.store.record_health(context, agent, update).await?;
    Ok(Json(EmptyObject {}))
}

pub(crate) async fn read_revision_health(
    State(broker): State<Broker>,
    PathParams(revision): PathParams<RevisionId>,
) -> Result<Json<DeploymentHealthResponse>, ErrorResponse> {
    Ok(Json(summarize(revision, broker.store.list_health_of_revision(revision).await?)))
}

pub(crate) async fn read_stack_health(
    State(broker): State<Broker>,
    PathParams(stack): PathParams<StackId>,
) -> Result<Json<StackHealthResponse>, ErrorResponse> {
    let records = broker.store.list_health_of_stack(stack).await?;
    let overall_status = worst_status(&records);
    let by_revision = records.chunk_by(|one, other| one.deployment_object_id == other.deployment_object_id);
    let deployment_objects =
        by_revision.map(|records| summarize(records[0].deployment_object_id, records.to_vec())).collect();
    Ok(Json(StackHealthResponse { stack_id: stack, overall_status, deployment_objects }))
}

fn summarize(revision: RevisionId, records: Vec<DeploymentHealth>) -> DeploymentHealthResponse {
    let overall_status = worst_status(&records);
    DeploymentHealthResponse { deployment_object_id: revision, overall_status, health_records: records }
}

fn worst_status(records: &[DeploymentHealth]) -> HealthStatus {
    HealthStatus::worst(records.iter().map(|record| record.status))
}
