//! The audit log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::AuditId;

/// Entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLog {
    /// Id of the entry.
    pub id: AuditId,
    /// Time of the action.
    pub timestamp: Timestamp,
    /// `admin`, `agent`, `generator` or `system`.
    pub actor_type: String,
    /// Id of the administrator, agent or generator.
    #[serde(default)]
    pub actor_id: Option<String>,
    /// Name of the administrator, agent or generator; `system` for the broker itself.
    #[serde(default)]
    pub actor_name: Option<String>,
    /// Action, such as `stack.deleted`.
    pub action: String,
    /// Type of the resource.
    pub resource_type: String,
    /// Id of the resource.
    #[serde(default)]
    pub resource_id: Option<String>,
    /// Further details; never a secret.
    #[serde(default)]
    pub details: Option<Value>,
    /// Peer address of the request.
    #[serde(default)]
    pub ip_address: Option<String>,
    /// `User-Agent` of the request.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// Time at which the entry was written, in the transaction of the action.
    pub created_at: Timestamp,
}

/// Page of the audit log, newest entries first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLogListResponse {
    /// Entries.
    pub logs: Vec<AuditLog>,
    /// Number of all matching entries.
    pub total: i64,
    /// Number of entries in this page.
    pub count: usize,
    /// Maximum number of entries, as requested.
    pub limit: i64,
    /// Number of skipped entries, as requested.
    pub offset: i64,
}
