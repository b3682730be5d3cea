//! Who did what, newest first.

use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::{AuditLog, AuditLogListResponse};

use super::validation::check_offset;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::Asked;
use crate::api::http::pagination::{Listed, Paged};
use crate::broker::Broker;
use crate::store::AuditFilter;

const LIMIT_DEFAULT: i64 = 100;
const LIMIT_MAX: i64 = 1_000;

/// Which entries.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Which {
    /// `admin`, `agent`, `generator` or `system`.
    actor_type: Option<String>,
    /// The id of an agent or a generator.
    actor_id: Option<String>,
    /// Such as `stack.deleted`; a trailing `*` matches any ending.
    action: Option<String>,
    /// Such as `stack`.
    resource_type: Option<String>,
    /// Its id.
    resource_id: Option<String>,
    /// Not before.
    from: Option<Timestamp>,
    /// Not after.
    to: Option<Timestamp>,
    /// How many to leave out.
    #[serde(default)]
    offset: i64,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    Asked(which): Asked<Which>,
    paged: Paged<LIMIT_DEFAULT, LIMIT_MAX>,
) -> Result<Listed<AuditLogListResponse>, Refusal> {
    let (page, offset) = (paged.page(), check_offset(which.offset)?);
    let filter = AuditFilter {
        actor_type: which.actor_type,
        actor_id: which.actor_id,
        action: which.action,
        resource_type: which.resource_type,
        resource_id: which.resource_id,
        from: which.from,
        to: which.to,
        limit: page.limit,
        offset,
        after: page.after.and_then(|after| after.parse().ok()),
    };
    let (logs, total) = broker.store.list_audit_log(filter).await?;
    let listed = paged.listed(logs, |log: &AuditLog| log.id);
    Ok(listed.map(|logs| AuditLogListResponse { count: logs.len(), logs, total, limit: page.limit, offset }))
}
