//! Errors of PostgreSQL, as the store reports them.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;
use thiserror::Error;
use tokio_postgres::error::SqlState;

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
    /// The certificate of the server is not accepted.
    #[error("the certificate of the database server is not accepted: {0}")]
    Certificate(String),
    /// The file of certificate authorities cannot be used.
    #[error("the certificate authorities in {file} cannot be used: {reason}")]
    Authorities {
        /// Path of the file.
        file: String,
        /// Reason.
        reason: String,
    },
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

impl PostgresError {
    /// Converts the error of a new connection.
    pub(super) fn from_connecting(error: &(dyn StdError + 'static)) -> Self {
        match find_certificate_error(error) {
            // An authority with the name of the right one, and another key, has made a bad signature.
            Some(CertificateError::UnknownIssuer | CertificateError::BadSignature) => Self::Certificate(
                "its issuer is not trusted; set sslrootcert in the URL to a file with the certificate of its issuer"
                    .to_owned(),
            ),
            Some(reason) => Self::Certificate(reason.to_string()),
            None => Self::Unreachable(root_cause(error)),
        }
    }
}

fn find_certificate_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a CertificateError> {
    let handshake = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref()?.downcast_ref());
    match handshake {
        Some(rustls::Error::InvalidCertificate(reason)) => Some(reason),
        _ => find_certificate_error(error.source()?),
    }
}

/// Returns the message of the innermost error, which names the cause.
pub(super) fn root_cause(error: &dyn StdError) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Errors after which the server has rolled the transaction back, and a retry may succeed: the transaction met another
/// one, the server ends or is a standby, or a limit of the connection was reached.
const RETRIABLE: [SqlState; 14] = [
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::QUERY_CANCELED,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::T_R_SERIALIZATION_FAILURE,
    // Names that exist already are found before they are inserted: a concurrent transaction has inserted this one.
    SqlState::UNIQUE_VIOLATION,
    // And rows that others refer to are read before: a concurrent transaction has deleted this one.
    SqlState::FOREIGN_KEY_VIOLATION,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::DISK_FULL,
    SqlState::OUT_OF_MEMORY,
];

/// Converts the error of a statement inside a transaction, or of one that reads: nothing is durable.
pub(super) fn to_store_error(error: &tokio_postgres::Error) -> StoreError {
    let is_retriable = error.code().is_some_and(|code| RETRIABLE.contains(code));
    if is_retriable || is_connection_lost(error) {
        tracing::warn!(error = root_cause(error), "the database has not carried out an operation");
        return StoreError::Unavailable;
    }
    StoreError::Failed(root_cause(error))
}

/// Converts the error of a commit. If the connection was lost, the transaction may be durable.
pub(super) fn commit_error(error: &tokio_postgres::Error) -> StoreError {
    if is_connection_lost(error) { StoreError::Failed(root_cause(error)) } else { to_store_error(error) }
}

fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|source| source.is::<io::Error>())
}
