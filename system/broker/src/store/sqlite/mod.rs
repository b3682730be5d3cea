//! The store in one SQLite file: one connection, one operation after another.
//!
//! The file belongs to one broker at a time: a second broker on the same file is rejected at its start. Other programs
//! may read the file of a broker process, so that a backup needs no pause.
//!
//! Calls run inline, or on a thread that the process provides. On a thread they wait in a bounded queue, and calls that
//! wait together share a transaction.

mod backup;
mod batch;
mod database;
mod error;
mod file_lock;
mod schema;
mod session;
mod worker;

pub use backup::{BackupError, BackupSummary, back_up_sqlite, restore_sqlite};
pub use database::{Gate, SqliteStore};
pub use error::SqliteError;
pub use worker::SqliteWorker;
