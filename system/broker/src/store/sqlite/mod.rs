//! The store in one SQLite file: one connection, one operation after another.
//!
//! The file belongs to one broker at a time (exclusive locking): the write-ahead log needs no shared memory, and a
//! second broker on the same file is rejected at its start.
//!
//! Calls run inline, or on a thread that the process provides. On a thread they wait in a bounded queue, and calls that
//! wait together share a transaction.

mod batch;
mod database;
mod error;
mod schema;
mod session;
mod worker;

pub use database::{Gate, SqliteStore};
pub use error::SqliteError;
pub use worker::SqliteWorker;
