//! Errors of PostgreSQL, as the store reports them.

use std::error::Error as StdError;

use thiserror::Error;

use crate::store::records::StoreError;

/// Reason why a database cannot be used as a store.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// The URL is invalid.
    #[error("not an address of a PostgreSQL database: {0}")]
    Address(String),
    /// The server does not respond, or rejects the connection.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// A newer version of Sindri has migrated the database.
    #[error(
        "the database has schema version {found}, and this broker knows versions up to {known}: use a newer broker"
    )]
    Newer {
        /// Version of the database.
        found: i64,
        /// Newest version that this broker knows.
        known: usize,
    },
    /// A migration failed.
    #[error("the schema cannot be brought up to date: {0}")]
    Migration(String),
}

/// Returns the message of the innermost error, which names the cause.
pub(super) fn root_cause(error: &dyn StdError) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Converts an error into a failure of the store.
pub(super) fn to_store_error(error: &dyn StdError) -> StoreError {
    StoreError::Failed(root_cause(error))
}
