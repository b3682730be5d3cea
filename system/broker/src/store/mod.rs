//! What the broker must remember, as verbs of the domain.
//!
//! A store has no clock and no entropy of its own: times and a source of ids come with each change. Each call is one
//! transaction, with its audit entry and its webhook messages in it; when it returns, what it did is durable. The
//! future of a call does nothing until it is polled.
//!
//! There are two stores, SQLite and PostgreSQL. The verbs are written once (`sql/`), over transactions of either.

mod operations;
mod postgres;
mod records;
mod sql;
mod sqlite;

pub use operations::Store;
pub use postgres::{PostgresError, PostgresStore, Submitter};
pub use records::{
    AgentReport, AuditFilter, Change, Claim, Claimed, ClaimedDelivery, DeliveryFilter, DesiredObject, DesiredSet, Era,
    FleetEntry, Heartbeat, KeyHolder, KeyRecord, NewRevision, NewestRevision, News, NextStep, Noun, Page,
    RevisionRecord, SealedParts, Settlement, StackReports, Stamp, StoreError, Stored, Watcher, WebhookRecord, Whose,
};
pub use sqlite::{Gate, OpenError, SqliteStore, Worker};
