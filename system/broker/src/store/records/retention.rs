//! Times before which records are deleted.

use jiff::Timestamp;

/// Times before which records that nothing needs any more are deleted. None: never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionCutoffs {
    /// Events. The last one of each agent about each revision of the current target states stays.
    pub events: Option<Timestamp>,
    /// Entries of the audit log.
    pub audit: Option<Timestamp>,
    /// Revisions that are neither the newest of their stack nor an unconfirmed removal, with the health reports about them, and
    /// decided approvals; the last one of each agent about each revision of the current target states stays.
    pub revisions: Option<Timestamp>,
    /// Idempotency keys.
    pub idempotency_keys: Option<Timestamp>,
    /// Webhook messages that wait: they are not sent any more.
    pub waiting_messages: Option<Timestamp>,
    /// Proposals that expire until then.
    pub expired_proposals: Option<Timestamp>,
}
