//! The durable state of the broker, as operations of the domain.
//!
//! A store has no clock and no entropy of its own: times and a source of ids come with each write. Each call is one
//! transaction that includes its audit entry and its webhook messages; when the call returns, the transaction is
//! durable. The future of a call does nothing until it is polled.
//!
//! There are two stores, SQLite and PostgreSQL. The operations are written once (`sql/`), over transactions of either.

mod bundle_cipher;
mod operations;
mod postgres;
mod records;
mod sql;
mod sqlite;

pub(crate) use bundle_cipher::is_encrypted;
pub use bundle_cipher::{BundleCipher, BundleDecryptionError};
pub use operations::Store;
pub(crate) use operations::TimedStore;
pub use postgres::{PostgresError, PostgresStore, Submitter};
pub use records::{
    AcquireDeliveries, AcquiredDeliveries, AcquiredDelivery, AssignmentRecord, AttemptOutcome, AuditFilter,
    ChangeObserver, ChangeWebhook, ChangesSince, ConditionSummary, DatabaseUsage, DeliveryAttempt, DeliveryFilter,
    EncryptedParts, EventFilter, EventOrder, FailedLogin, FleetEntry, GeneratorUsage, Heartbeat, KeyAccess, KeyHolder,
    KeyRecord, KeyRotation, ListScope, LoginFailure, NewProposal, NewRevision, NewestRevision, OverviewFilter,
    OverviewRecords, OverviewStack, Page, ProposalRecord, RecordCounts, RecordKind, Reencrypt, ReportedAssignment,
    ReportedOutcome, ReportedPhase, RestoreEvidence, RetentionCutoffs, RewriteBundle, StackReports, StoreChange,
    StoreError, StoreFigures, StoreFuture, StorePosition, StoredKey, StoredRevision, TargetRevision, TargetState,
    WebhookRecord, WriteContext,
};
pub(crate) use records::{cut, policy_bytes};
pub(crate) use sql::shared::idempotency::KEY_TIME as IDEMPOTENCY_KEY_TIME;
pub(crate) use sql::webhooks::deliveries::WAIT_MAX as MESSAGE_WAIT_MAX;
pub use sqlite::{
    BackupError, BackupSummary, Gate, SqliteError, SqliteStore, SqliteWorker, back_up_sqlite, restore_sqlite,
};
