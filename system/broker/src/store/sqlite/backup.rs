//! Backups of an SQLite database: taken while a broker uses it, checked, and restored.
//!
//! A backup is one database file. It is copied in one read transaction, which does not stop the broker's writes. Every
//! backup is checked before it gets its name, and again before it replaces a database.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use sindri_model::{Checksum, Epoch, Sequence};
use thiserror::Error;

use super::database::SqliteStore;
use super::error::SqliteError;
use super::file_lock::FileLock;
use super::schema;
use crate::store::bundle_cipher::{BundleCipher, is_encrypted, open_bundle};
use crate::store::operations::Store;
use crate::store::records::{StoreError, StorePosition, WriteContext};

/// Longest wait for a program that has locked the database for a moment.
const LOCKED_MAX: Duration = Duration::from_secs(5);
/// Suffix of a file that is not complete yet.
const DRAFT: &str = ".partial";
/// Suffix of a database that was replaced by a restored one.
const REPLACED: &str = ".replaced";

/// Content of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// Number of revisions.
    pub revisions: i64,
    /// Number of encrypted bundles whose checksum was not checked, because there was no key.
    pub unchecked: i64,
    /// Epoch and last number of the counter.
    pub position: StorePosition,
}

/// A backup was not taken or not restored.
#[derive(Debug, Error)]
pub enum BackupError {
    /// There is no such database.
    #[error("there is no database in {0}")]
    Missing(String),
    /// The file for the backup exists.
    #[error("{0} exists, and a backup overwrites no file")]
    Exists(String),
    /// The database into which the backup would be restored is not empty.
    #[error("{0} has a database: stop its broker and use --overwrite to replace it")]
    NotEmpty(String),
    /// The file is not a complete database of a broker.
    #[error("{file} is damaged: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// First problem that was found.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// Reason.
        source: io::Error,
    },
    /// A database cannot be used.
    #[error("{path}: {source}")]
    Database {
        /// Path of the database.
        path: String,
        /// Reason.
        source: SqliteError,
    },
    /// The new epoch cannot begin.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Copies the database at `database` to the new file `file`, also while a broker writes to it, and checks the copy.
pub fn back_up_sqlite(database: &str, file: &str, cipher: Option<&BundleCipher>) -> Result<BackupSummary, BackupError> {
    if Path::new(file).exists() {
        return Err(BackupError::Exists(file.to_owned()));
    }
    let draft = format!("{file}{DRAFT}");
    copy(database, &draft)?;
    let summary = verify(&draft, cipher)?;
    replace_file(&draft, file).map_err(|source| BackupError::File { path: file.to_owned(), source })?;
    Ok(summary)
}

/// Restores the backup `file` to `database`, in a new epoch that is above the one of the backup and of a database that is
/// replaced. A replaced database is kept next to the new one, with the suffix `.replaced`.
pub async fn restore_sqlite(
    file: &str,
    database: &str,
    may_overwrite: bool,
    cipher: Option<&BundleCipher>,
    context: WriteContext,
) -> Result<BackupSummary, BackupError> {
    let in_database = |source| BackupError::Database { path: database.to_owned(), source };
    let _lock = FileLock::acquire(database).map_err(in_database)?;
    let exists = has_content(database) || has_content(&format!("{database}-wal"));
    if exists && !may_overwrite {
        return Err(BackupError::NotEmpty(database.to_owned()));
    }
    let draft = format!("{database}{DRAFT}");
    copy(file, &draft)?;
    let summary = verify(&draft, cipher).map_err(|error| rename_damaged(error, file))?;
    let replaced_epoch = if exists { read_epoch(database) } else { None };
    let store = SqliteStore::open(&draft, None).map_err(in_database)?;
    let above = replaced_epoch.map_or(summary.position.epoch, |epoch| epoch.max(summary.position.epoch));
    let position = store.begin_epoch(context, above, format!("an operator restored {file}")).await?;
    // Closes the file, which moves its write-ahead log into it.
    drop(store);
    let moved = keep_replaced(database).and_then(|()| replace_file(&draft, database));
    moved.map_err(|source| BackupError::File { path: database.to_owned(), source })?;
    Ok(BackupSummary { position, ..summary })
}

/// Copies a database to a file that only its owner can read.
fn copy(from: &str, to: &str) -> Result<(), BackupError> {
    if !Path::new(from).exists() {
        return Err(BackupError::Missing(from.to_owned()));
    }
    create_empty(to).map_err(|source| BackupError::File { path: to.to_owned(), source })?;
    let copied = open(from).and_then(|source| {
        let mut target = open(to)?;
        // All pages in one step: one read transaction, so that the copy is the database of one moment.
        let step = Backup::new(&source, &mut target)?.step(-1)?;
        if step != StepResult::Done {
            return Err(SqliteError::InUse);
        }
        // The copy is one file, without a log next to it.
        target.pragma_update(None, "journal_mode", "DELETE")?;
        Ok(())
    });
    copied.map_err(|source| BackupError::Database { path: from.to_owned(), source })
}

/// Checks that a file is a complete database: its structure, its references, its counter and the checksum of each revision.
fn verify(file: &str, cipher: Option<&BundleCipher>) -> Result<BackupSummary, BackupError> {
    let checked = open(file).and_then(|connection| {
        schema::check_version(&connection)?;
        Ok(match find_damage(&connection)? {
            Some(reason) => Err(reason),
            None => match check_bundles(&connection, cipher)? {
                Ok(unchecked) => Ok(BackupSummary { unchecked, ..read_summary(&connection)? }),
                Err(reason) => Err(reason),
            },
        })
    });
    let summary = checked.map_err(|source| BackupError::Database { path: file.to_owned(), source })?;
    summary.map_err(|reason| BackupError::Damaged { file: file.to_owned(), reason })
}

/// Returns the first problem of a database.
fn find_damage(connection: &Connection) -> Result<Option<String>, SqliteError> {
    let integrity: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if integrity != "ok" {
        return Ok(Some(integrity));
    }
    let dangling: Option<String> = connection.query_row("PRAGMA foreign_key_check", [], |row| row.get(0)).optional()?;
    if let Some(table) = dangling {
        return Ok(Some(format!("a row of the table {table} refers to a row that does not exist")));
    }
    let is_ahead = "SELECT coalesce(max(sequence), 0) > (SELECT value FROM meta WHERE name = 'tick') FROM revisions";
    if connection.query_row(is_ahead, [], |row| row.get(0))? {
        return Ok(Some("a revision has a higher sequence than the counter".to_owned()));
    }
    Ok(None)
}

/// Checks the checksum of each bundle; returns the number of those that could not be decrypted because there is no key. The
/// inner error is the first problem.
fn check_bundles(connection: &Connection, cipher: Option<&BundleCipher>) -> Result<Result<i64, String>, SqliteError> {
    let mut unchecked = 0;
    let mut revisions = connection.prepare("SELECT sequence, id, yaml_content, yaml_checksum FROM revisions")?;
    let mut rows = revisions.query([])?;
    while let Some(row) = rows.next()? {
        let (sequence, id, stored): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let checksum: String = row.get(3)?;
        if is_encrypted(&stored) && cipher.is_none() {
            unchecked += 1;
            continue;
        }
        let plain = match is_encrypted(&stored) {
            true => id.parse().ok().and_then(|id| open_bundle(cipher, id, stored).ok()),
            false => Some(stored),
        };
        match plain {
            None => return Ok(Err(format!("the bundle of revision {sequence} cannot be decrypted with the key"))),
            Some(plain) if Checksum::compute(&plain).as_str() != checksum => {
                return Ok(Err(format!("the bundle of revision {sequence} does not have its checksum")));
            }
            Some(_) => {}
        }
    }
    Ok(Ok(unchecked))
}

fn read_summary(connection: &Connection) -> Result<BackupSummary, SqliteError> {
    let sql = "SELECT (SELECT count(*) FROM revisions), (SELECT value FROM meta WHERE name = 'epoch'),
                      (SELECT value FROM meta WHERE name = 'tick')";
    Ok(connection.query_row(sql, [], |row| {
        let position = StorePosition { epoch: Epoch(row.get(1)?), latest: Sequence(row.get(2)?) };
        Ok(BackupSummary { revisions: row.get(0)?, unchecked: 0, position })
    })?)
}

/// Returns the epoch of a database, if it can be read: it may be replaced because it is damaged.
fn read_epoch(database: &str) -> Option<Epoch> {
    let connection = open(database).ok()?;
    connection.query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0)).map(Epoch).ok()
}

fn open(path: &str) -> Result<Connection, SqliteError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCKED_MAX)?;
    Ok(connection)
}

fn has_content(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}

/// Creates an empty file that only its owner can read, in place of a draft that was left behind.
fn create_empty(path: &str) -> io::Result<()> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        remove_if_exists(&format!("{path}{suffix}"))?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Moves a database with its write-ahead log away.
fn keep_replaced(database: &str) -> io::Result<()> {
    // The log first: a new database must never meet the log of another one.
    for suffix in ["-wal", ""] {
        match std::fs::rename(format!("{database}{suffix}"), format!("{database}{REPLACED}{suffix}")) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                remove_if_exists(&format!("{database}{REPLACED}{suffix}"))?;
            }
            moved => moved?,
        }
    }
    remove_if_exists(&format!("{database}-shm"))
}

/// Makes a complete file durable and gives it its name.
fn replace_file(draft: &str, file: &str) -> io::Result<()> {
    File::open(draft)?.sync_all()?;
    std::fs::rename(draft, file)?;
    let parent = Path::new(file).parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn remove_if_exists(path: &str) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Names the backup in an error about its copy.
fn rename_damaged(error: BackupError, file: &str) -> BackupError {
    match error {
        BackupError::Damaged { reason, .. } => BackupError::Damaged { file: file.to_owned(), reason },
        BackupError::Database { source, .. } => BackupError::Database { path: file.to_owned(), source },
        other => other,
    }
}
