//! Values that go into a store and come out of it, except those that are wire types.

mod audit;
mod changes;
mod condition_summary;
mod error;
mod figures;
mod fleet;
mod keys;
mod overview;
mod paging;
mod policies;
mod proposals;
mod reports;
mod retention;
mod revisions;
mod webhooks;
mod write_context;

use std::future::Future;
use std::pin::Pin;

pub use audit::{AuditFilter, FailedLogin, LoginFailure};
pub use changes::{ChangeObserver, ChangesSince, RestoreEvidence, StoreChange, StorePosition};
pub(crate) use condition_summary::cut;
pub use condition_summary::{ConditionSummary, ReportedPhase};
pub use error::{RecordKind, StoreError};
pub(crate) use figures::COUNTED_MAX;
pub use figures::{DatabaseUsage, StoreFigures};
pub use fleet::{FleetEntry, GeneratorUsage, Heartbeat, RecordCounts};
pub use keys::{KeyAccess, KeyHolder, KeyRecord, KeyRotation, StoredKey};
pub use overview::{
    AssignmentRecord, OverviewFilter, OverviewRecords, OverviewStack, ReportedAssignment, ReportedOutcome,
};
pub use paging::{ListScope, Page};
pub(crate) use policies::{DEPENDENCIES_FACTOR, policy_bytes};
pub use proposals::{NewProposal, ProposalRecord};
pub use reports::{EventFilter, EventOrder, StackReports};
pub use retention::RetentionCutoffs;
pub use revisions::{NewRevision, NewestRevision, RewriteBundle, StoredRevision, TargetRevision, TargetState};
pub use webhooks::{
    AcquireDeliveries, AcquiredDeliveries, AcquiredDelivery, AttemptOutcome, ChangeWebhook, DeliveryAttempt,
    DeliveryFilter, EncryptedParts, Reencrypt, WebhookRecord,
};
pub use write_context::WriteContext;

/// Future of a call to a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
