//! Health of applied revisions, as agents report it.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sindri_model::limits::HEALTH_RECORDS_MAX;
use sindri_model::wire::{
    DeploymentHealth, DeploymentHealthResponse, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusError,
    HealthStatusUpdate, StackHealthResponse,
};
use sindri_model::{AgentId, RevisionId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::EmptyObject;
use crate::broker::Broker;
use crate::store::WriteContext;

/// Limit of a summary as JSON.
const SUMMARY_BYTES_MAX: usize = 16 * 1024;

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
        Ok(DeploymentObjectHealthUpdate { id, status: status.parse()?, summary: summary.map(cut_summary), checked_at })
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
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<DeploymentHealthResponse>, ErrorResponse> {
    let DeploymentHealthResponse { overall_status, health_records, .. } =
        broker.store.get_health_of_revision(revision, params.page()).await?;
    let page = params.respond_sized(health_records, |record| record.id, summary_bytes);
    let to_body =
        |health_records| DeploymentHealthResponse { deployment_object_id: revision, overall_status, health_records };
    permit.serialize(&broker, page.map(to_body)).await
}

fn summary_bytes(record: &DeploymentHealth) -> usize {
    record.summary.as_ref().map_or(0, json_bytes)
}

pub(crate) async fn read_stack_health(
    State(broker): State<Broker>,
    PathParams(stack): PathParams<StackId>,
    params: ListParams,
) -> Result<ListResponse<StackHealthResponse>, ErrorResponse> {
    let StackHealthResponse { overall_status, deployment_objects, .. } =
        broker.store.get_health_of_stack(stack, params.page()).await?;
    let page = params.respond(deployment_objects, |counts| counts.id);
    Ok(page.map(|deployment_objects| StackHealthResponse { stack_id: stack, overall_status, deployment_objects }))
}

/// Returns a summary within the limit: of a longer one the shortest fields, and a field that says so. The status of the record must
/// not be lost for the length of its summary.
fn cut_summary(summary: Value) -> Value {
    if json_bytes(&summary) <= SUMMARY_BYTES_MAX {
        return summary;
    }
    let fields = match summary {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    // Each with its quotes, its colon and its comma.
    let to_sized = |(name, value): (String, Value)| (json_bytes(&json!(name)) + json_bytes(&value) + 2, name, value);
    let mut fields: Vec<(usize, String, Value)> = fields.into_iter().map(to_sized).collect();
    fields.sort_by_key(|(bytes, ..)| *bytes);
    let mut cut = Map::from_iter([("truncated".to_owned(), Value::Bool(true))]);
    let mut free = SUMMARY_BYTES_MAX - json_bytes(&json!(cut));
    for (bytes, name, value) in fields {
        if bytes > free {
            break;
        }
        free -= bytes;
        cut.insert(name, value);
    }
    Value::Object(cut)
}

fn json_bytes(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_summary_keeps_its_short_fields() {
        let short = json!({"pods_ready": 1, "conditions": ["x".repeat(SUMMARY_BYTES_MAX - 100)]});
        assert_eq!(cut_summary(short.clone()), short);
        let long = json!({"conditions": ["x".repeat(SUMMARY_BYTES_MAX)], "pods_ready": 1, "pods_total": 2});
        assert_eq!(cut_summary(long), json!({"pods_ready": 1, "pods_total": 2, "truncated": true}));
        assert_eq!(cut_summary(json!("x".repeat(SUMMARY_BYTES_MAX))), json!({"truncated": true}));
        let many: Map<String, Value> = (0..10_000).map(|number| (number.to_string(), json!(number))).collect();
        assert!(json_bytes(&cut_summary(json!(many))) <= SUMMARY_BYTES_MAX);
    }
}
