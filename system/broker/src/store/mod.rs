//! What the broker must remember, as verbs of the domain.
//!
//! A store has no clock and no entropy of its own: times and a source of ids come with each change. Each call is one
//! transaction, with its audit entry and its webhook messages in it; when it returns, what it did is durable. The
//! future of a call does nothing until it is polled.
//!
//! There are two stores, SQLite and PostgreSQL. The verbs are written once (`sql/`), over transactions of either.

mod postgres;
mod sql;
mod sqlite;
mod types;
mod verbs;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use postgres::{PostgresError, PostgresStore, Submitter};
pub use sqlite::{Gate, OpenError, SqliteStore, Worker};
pub use types::{
    AgentReport, AuditFilter, Change, Claim, Claimed, ClaimedDelivery, DeliveryFilter, DesiredObject, DesiredSet, Era,
    FleetEntry, Heartbeat, KeyHolder, KeyRecord, NewRevision, NewestRevision, News, NextStep, Noun, Page,
    RevisionRecord, SealedParts, Settlement, StackReports, Stamp, StoreError, WebhookRecord, Whose,
};
pub use verbs::Store;

/// The result of a call to a store, later.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Told of each change that a store has committed for its own broker, before the call that made it returns.
pub type Watcher = Arc<dyn Fn(&[Change]) + Send + Sync>;
