//! Filter of the audit log.

use jiff::Timestamp;
use sindri_model::AuditId;

/// Filter of the audit log: an entry must match every field that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Type of the actor.
    pub actor_type: Option<String>,
    /// Id of the actor.
    pub actor_id: Option<String>,
    /// Action; a trailing `*` matches any ending.
    pub action: Option<String>,
    /// Type of the resource.
    pub resource_type: Option<String>,
    /// Id of the resource.
    pub resource_id: Option<String>,
    /// Earliest time.
    pub from: Option<Timestamp>,
    /// Latest time.
    pub to: Option<Timestamp>,
    /// Largest number of entries.
    pub limit: i64,
    /// Number of entries to skip.
    pub offset: i64,
    /// Entry after which the page begins; an alternative to an offset.
    pub after: Option<AuditId>,
}
