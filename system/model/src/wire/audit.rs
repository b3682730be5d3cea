//! Who did what, and whose keys there are.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AuditId, PakId};

/// One thing that somebody did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLog {
    /// Its id.
    pub id: AuditId,
    /// When it was done.
    pub timestamp: Timestamp,
    /// `admin`, `agent`, `generator` or `system`.
    pub actor_type: String,
    /// Which agent or generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// What was done, such as `stack.deleted`.
    pub action: String,
    /// To what kind of thing.
    pub resource_type: String,
    /// To which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// What else there is to say; never a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Where the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// With what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// When it was recorded: in the same transaction.
    pub created_at: Timestamp,
}

/// A part of the audit log, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLogListResponse {
    /// The entries.
    pub logs: Vec<AuditLog>,
    /// How many match in all.
    pub total: i64,
    /// How many are here.
    pub count: usize,
    /// How many were asked for.
    pub limit: i64,
    /// How many were left out before the first.
    pub offset: i64,
}

/// A key, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PakSummary {
    /// Its id, for filters.
    pub id: PakId,
    /// Whose it is.
    pub name: String,
}
