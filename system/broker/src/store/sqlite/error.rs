//! Errors of opening an SQLite file.

use std::io;

use rusqlite::ErrorCode;
use thiserror::Error;

/// Reason why a file cannot be used as a store.
#[derive(Debug, Error)]
pub enum SqliteError {
    /// A newer version of Sindri has migrated the file.
    #[error(
        "the database has schema version {found}, and this broker knows versions up to {known}: use a newer broker"
    )]
    Newer {
        /// Version of the file.
        found: i64,
        /// Newest version that this broker knows.
        known: usize,
    },
    /// The file holds the tables of another program.
    #[error("the database is not one of Sindri: it holds other tables")]
    Foreign,
    /// Another process has locked the file.
    #[error("the database is in use by another process")]
    InUse,
    /// The lock next to the file cannot be taken.
    #[error("the lock of the database cannot be taken: {0}")]
    Lock(io::Error),
    /// SQLite failed.
    #[error("the database cannot be opened: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            _ => Self::Sqlite(error),
        }
    }
}
