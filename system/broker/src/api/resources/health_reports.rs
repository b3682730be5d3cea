//! Health of applied revisions, as agents report it.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sindri_model::limits::HEALTH_RECORDS_MAX;
use sindri_model::wire::{
    DeploymentHealth, DeploymentHealthResponse, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusError,
    HealthStatusUpdate, StackDeploymentHealth, StackHealthResponse,
};
use sindri_model::{AgentId, RevisionId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::response::EmptyObject;
use crate::broker::Broker;
use crate::store::WriteContext;

/// Health report of an agent. A status that is not one is an error of the record, not of the JSON.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "HealthStatusUpdate")]
pub(crate) struct HealthReport {
    /// One entry per revision.
    #[schemars(length(max = HEALTH_RECORDS_MAX))]
    deployment_objects: Vec<HealthRecord>,
}

/// Health report of an agent for one revision.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "DeploymentObjectHealthUpdate")]
pub(crate) struct HealthRecord {
    /// Id of the revision.
    id: RevisionId,
    /// Health of the revision's objects.
    #[schemars(with = "HealthStatus")]
    status: String,
    /// Counts of pods and conditions, in the agent's own format.
    summary: Option<Value>,
    /// Time of the check.
    checked_at: Timestamp,
}

impl HealthRecord {
    fn check(self) -> Result<DeploymentObjectHealthUpdate, HealthStatusError> {
        let Self { id, status, summary, checked_at } = self;
        Ok(DeploymentObjectHealthUpdate { id, status: status.parse()?, summary, checked_at })
    }
}

pub(crate) async fn report(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    context: WriteContext,
    JsonBody(report): JsonBody<HealthReport>,
) -> Result<Json<EmptyObject>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    if report.deployment_objects.len() > HEALTH_RECORDS_MAX {
        return Err(invalid_record(format!("a report must have at most {HEALTH_RECORDS_MAX} deployment objects")));
    }
    let checked: Result<_, _> = report.deployment_objects.into_iter().map(HealthRecord::check).collect();
    let update = HealthStatusUpdate { deployment_objects: checked.map_err(|error| invalid_record(error.to_string()))? };
    broker.store.record_health(context, agent, update).await?;
    Ok(Json(EmptyObject {}))
}

/// Returns the error for a report with an invalid record, of which nothing is recorded.
fn invalid_record(message: String) -> ErrorResponse {
    ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_health_record", message)
}

pub(crate) async fn read_revision_health(
    State(broker): State<Broker>,
    PathParams(revision): PathParams<RevisionId>,
) -> Result<Json<DeploymentHealthResponse>, ErrorResponse> {
    let records = broker.store.list_health_of_revision(revision).await?;
    let overall_status = worst_status(&records);
    Ok(Json(DeploymentHealthResponse { deployment_object_id: revision, overall_status, health_records: records }))
}

pub(crate) async fn read_stack_health(
    State(broker): State<Broker>,
    PathParams(stack): PathParams<StackId>,
) -> Result<Json<StackHealthResponse>, ErrorResponse> {
    let records = broker.store.list_health_of_stack(stack).await?;
    let overall_status = worst_status(&records);
    let by_revision = records.chunk_by(|one, other| one.deployment_object_id == other.deployment_object_id);
    let deployment_objects = by_revision.map(count_agents).collect();
    Ok(Json(StackHealthResponse { stack_id: stack, overall_status, deployment_objects }))
}

/// Counts the reports about one revision, of which there is at least one.
fn count_agents(records: &[DeploymentHealth]) -> StackDeploymentHealth {
    let count = |status| records.iter().filter(|record| record.status == status).count();
    StackDeploymentHealth {
        id: records[0].deployment_object_id,
        status: worst_status(records),
        healthy_agents: count(HealthStatus::Healthy),
        degraded_agents: count(HealthStatus::Degraded),
        failing_agents: count(HealthStatus::Failing),
    }
}

fn worst_status(records: &[DeploymentHealth]) -> HealthStatus {
    HealthStatus::worst(records.iter().map(|record| record.status))
}
