//! Lock that lets one broker at a time use a database file, while other programs may read it.
//!
//! The lock is on a file next to the database: SQLite's own locks are lost when any descriptor of the database closes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use super::error::SqliteError;

/// A held lock. It ends with this value, or with the process.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Locks the database at `path`. Fails if another process has locked it.
    pub(super) fn acquire(path: &str) -> Result<Self, SqliteError> {
        let file = open(&format!("{path}.lock")).map_err(SqliteError::Lock)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(SqliteError::InUse),
            Err(TryLockError::Error(error)) => Err(SqliteError::Lock(error)),
        }
    }
}

fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}
