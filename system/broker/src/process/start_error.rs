//! Reasons for which the process ends with an error.

use std::io;

use sindri_broker::{
    BackupError, BundleDecryptionError, DecryptionError, EncryptionKeyError, PostgresError, SqliteError, StoreError,
};
use sindri_client::TrustError;
use sindri_process::{ConfigError, TraceExportError};
use thiserror::Error;

use super::key::KeyError;
use super::tls_files::TlsFilesError;

/// Reason for which the broker cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The URL names no kind of database.
    #[error("there is no store for the database {0}: use sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")]
    NoStore(String),
    /// The SQLite file cannot be used.
    #[error("{path}: {source}")]
    Database { path: String, source: SqliteError },
    /// The PostgreSQL database cannot be used.
    #[error("{database}: {source}")]
    Postgres { database: String, source: PostgresError },
    /// A call to the database failed.
    #[error("{database}: {source}")]
    Store { database: String, source: StoreError },
    /// The SQLite file cannot be created.
    #[error("the database {path} cannot be opened: {source}")]
    DatabaseFile { path: String, source: io::Error },
    /// The encryption key is invalid.
    #[error("the encryption key of webhooks: {0}")]
    EncryptionKey(EncryptionKeyError),
    /// The file of the encryption key cannot be read.
    #[error("the encryption key of webhooks in {path}: {source}")]
    EncryptionKeyFile { path: String, source: io::Error },
    /// The encryption key does not decrypt a stored secret.
    #[error("{0}: set webhooks.encryption_key_file or webhooks.encryption_key to the key with which it was stored")]
    UndecryptableWebhook(DecryptionError),
    /// The encryption key does not decrypt a bundle.
    #[error("{0}: set webhooks.encryption_key_file or webhooks.encryption_key to the key with which it was stored")]
    UndecryptableBundle(BundleDecryptionError),
    /// Bundles cannot be encrypted without a key.
    #[error("database.encrypt_bundles needs a key: set webhooks.encryption_key_file or webhooks.encryption_key")]
    NoBundleKey,
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    /// The certificate cannot be used.
    #[error(transparent)]
    TlsFiles(#[from] TlsFilesError),
    /// The administrator's key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A backup was not taken or not restored.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The command needs a database that exists.
    #[error("there is no database at {0}: set database.url (--database-url) to that of the broker")]
    NoDatabase(String),
    /// The command is not for this kind of database.
    #[error("{0}")]
    WrongDatabase(&'static str),
    /// Nothing can be re-encrypted without the current key.
    #[error("set webhooks.encryption_key_file or webhooks.encryption_key to the current key")]
    NoEncryptionKey,
    /// The provider of people's tokens cannot be reached over TLS.
    #[error("tokens of people cannot be verified: {0}")]
    Oidc(TrustError),
    /// Traces cannot be exported.
    #[error(transparent)]
    Traces(#[from] TraceExportError),
    /// The system refused something.
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}
