//! The audit log: every write with its actor, newest first.

use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::{AuditLog, AuditLogListResponse};

use super::validation::check_offset;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::QueryParams;
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::broker::Broker;
use crate::store::AuditFilter;

const LIMIT_DEFAULT: i64 = 100;
const LIMIT_MAX: i64 = 1_000;

/// Filter of audit log entries.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AuditParams {
    /// `admin`, `agent`, `generator` or `system`.
    actor_type: Option<String>,
    /// Id of an agent or a generator.
    actor_id: Option<String>,
    /// Action, such as `stack.deleted`; a trailing `*` matches any ending.
    action: Option<String>,
    /// Type of the changed object, such as `stack`.
    resource_type: Option<String>,
    /// Id of the changed object.
    resource_id: Option<String>,
    /// Start of the time range, inclusive.
    from: Option<Timestamp>,
    /// End of the time range, inclusive.
    to: Option<Timestamp>,
    /// Number of entries to skip.
    #[serde(default)]
    #[schemars(range(min = 0))]
    offset: i64,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    QueryParams(query): QueryParams<AuditParams>,
    params: ListParams<LIMIT_DEFAULT, LIMIT_MAX>,
    permit: LargeList,
) -> Result<LargeListResponse<AuditLogListResponse>, ErrorResponse> {
    let (page, offset) = (params.page(), check_offset(query.offset)?);
    let filter = AuditFilter {
        actor_type: query.actor_type,
        actor_id: query.actor_id,
        action: query.action,
        resource_type: query.resource_type,
        resource_id: query.resource_id,
        from: query.from,
        to: query.to,
        limit: page.limit,
        offset,
        after: page.after.and_then(|after| after.parse().ok()),
    };
    let (logs, total) = broker.store.list_audit_log(filter).await?;
    let page_of_logs = params.respond_sized(logs, |log| log.id, text_bytes);
    let to_body =
        |logs: Vec<AuditLog>| AuditLogListResponse { count: logs.len(), logs, total, limit: page.limit, offset };
    permit.serialize(&broker, page_of_logs.map(to_body)).await
}

/// Returns the size of the texts of an entry that may be long.
fn text_bytes(log: &AuditLog) -> usize {
    log.details.as_ref().map_or(0, |details| details.to_string().len()) + log.user_agent.as_ref().map_or(0, String::len)
}
