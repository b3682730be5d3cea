//! Times before which records are deleted.

use jiff::Timestamp;

/// Times before which records that nothing refers to any more are deleted. None: never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionCutoffs {
    /// Events. The events about the revisions of the current target states stay.
    pub events: Option<Timestamp>,
    /// Entries of the audit log.
    pub audit: Option<Timestamp>,
    /// Revisions that are neither the newest of their stack nor an unconfirmed removal, with the health reports and the
    /// decided approvals about them.
    pub revisions: Option<Timestamp>,
    /// Idempotency keys.
    pub idempotency_keys: Option<Timestamp>,
}
