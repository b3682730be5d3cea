//! How what was applied is doing, as agents say.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{
    DeploymentHealth, DeploymentHealthResponse, HealthStatus, HealthStatusUpdate, StackHealthResponse,
};
use sindri_model::{AgentId, RevisionId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Body, Ids};
use crate::api::http::response::Done;
use crate::api::http::write_context::By;
use crate::broker::Broker;

/// How many revisions one report may be about.
const REVISIONS_MAX: usize = 1_000;

pub(crate) async fn report(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    By(stamp): By,
    Body(update): Body<HealthStatusUpdate>,
) -> Result<Json<Done>, Refusal> {
    actor.this_agent(agent)?;
    if update.deployment_objects.len() > REVISIONS_MAX {
        let message = format!("one report is about at most {REVISIONS_MAX} deployment objects");
        return Err(Refusal::bad("invalid_health_status", message));
    }
    broker.store.record_health(stamp, agent, update).await?;
    Ok(Json(Done {}))
}

pub(crate) async fn of_revision(
    State(broker): State<Broker>,
    Ids(revision): Ids<RevisionId>,
) -> Result<Json<DeploymentHealthResponse>, Refusal> {
    Ok(Json(summary(revision, broker.store.list_health_of_revision(revision).await?)))
}

pub(crate) async fn of_stack(
    State(broker): State<Broker>,
    Ids(stack): Ids<StackId>,
) -> Result<Json<StackHealthResponse>, Refusal> {
    let records = broker.store.list_health_of_stack(stack).await?;
    let overall_status = worst(&records);
    let by_revision = records.chunk_by(|one, other| one.deployment_object_id == other.deployment_object_id);
    let deployment_objects = by_revision.map(|of| summary(of[0].deployment_object_id, of.to_vec())).collect();
    Ok(Json(StackHealthResponse { stack_id: stack, overall_status, deployment_objects }))
}

fn summary(revision: RevisionId, records: Vec<DeploymentHealth>) -> DeploymentHealthResponse {
    let overall_status = worst(&records);
    DeploymentHealthResponse { deployment_object_id: revision, overall_status, health_records: records }
}

fn worst(records: &[DeploymentHealth]) -> HealthStatus {
    HealthStatus::worst(records.iter().map(|record| record.status))
}
