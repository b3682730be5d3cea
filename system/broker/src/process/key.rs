//! Keys of administrators: that of the first start, and one for an operator who has lost all others.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sindri_broker::{Broker, ErrorResponse, StoreError, create_admin_offline};
use sindri_model::{Entropy, Pak};

/// Permissions that let another user replace a key.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Permission that lets every user read a key. The group may read it, as volumes of Kubernetes need.
const READABLE_BY_ALL: u32 = 0o004;

/// An administrator's key does not exist and cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be used.
    #[error("the key file {path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Reason.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The administrator is not created.
    #[error("the administrator {name}: {reason}")]
    Admin {
        /// Its name.
        name: String,
        /// Reason.
        reason: ErrorResponse,
    },
    /// The database did not say whether the administrator is created.
    #[error("it is not known whether the administrator {name} is created: {reason}; try its key, which is kept")]
    UnknownOutcome {
        /// Its name.
        name: String,
        /// Reason.
        reason: ErrorResponse,
    },
}

/// Reason for which the key of a new administrator is not written.
const FILE_EXISTS: &str =
    "it exists; if a former create-admin was interrupted, no administrator may have its key: use another file";

/// Stands for standard output in place of the file of a key.
const STANDARD_OUTPUT: &str = "-";

/// Creates an administrator with a key in a new file, or on standard output, for an operator who has lost all others.
///
/// The key is written first: one that only the database has is of no use.
pub async fn create_admin_with_key(
    broker: &Broker,
    name: &str,
    key_file: &str,
    entropy: &Entropy,
) -> Result<(), KeyError> {
    let (pak, path) = (Pak::generate(entropy), Path::new(key_file));
    let is_printed = key_file == STANDARD_OUTPUT;
    if is_printed {
        let mut output = io::stdout().lock();
        let written = writeln!(output, "{}", pak.reveal()).and_then(|()| output.flush());
        written.map_err(|error| file_error(Path::new("standard output"), &error))?;
    } else {
        write_key(path, &pak).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => KeyError::File { path: key_file.to_owned(), reason: FILE_EXISTS.to_owned() },
            _ => file_error(path, &error),
        })?;
    }
    match create_admin_offline(broker, name, &pak).await {
        Ok(()) if is_printed => {}
        Ok(()) => println!("the key of the administrator {name} is stored in {key_file}"),
        Err(reason) if reason.is_rejection() => {
            if !is_printed {
                std::fs::remove_file(path).map_err(|error| file_error(path, &error))?;
            }
            return Err(KeyError::Admin { name: name.to_owned(), reason });
        }
        Err(reason) => return Err(KeyError::UnknownOutcome { name: name.to_owned(), reason }),
    }
    Ok(())
}

/// Creates the administrator's key unless there is one, and writes it to a file; prints it only if the operator asks for
/// it. The file is written before the database, so that after a crash in between the next start finds the key in the
/// file.
pub async fn create_admin_key(
    broker: &Broker,
    key_file: &Path,
    entropy: &Entropy,
    is_printed: bool,
) -> Result<(), KeyError> {
    if broker.has_admin_key().await? {
        return Ok(());
    }
    let path = key_file.display();
    let (pak, is_new) = match read_key(key_file)? {
        Some(pak) => (pak, false),
        None => write_new_key(key_file, entropy)?,
    };
    match (broker.create_admin_key(&pak).await?, is_new) {
        (true, true) if is_printed => {
            println!("the administrator's key, shown only once and stored in {path}: {}", pak.reveal());
        }
        (true, true) => println!("the administrator's key is stored in {path}"),
        (true, false) => println!("the administrator's key is the one in {path}"),
        (false, is_new) => {
            // Another broker on the same database was faster. A key that only this file has is of no use.
            if is_new {
                std::fs::remove_file(key_file).map_err(|error| file_error(key_file, &error))?;
            }
            println!("another broker has created the administrator's key");
        }
    }
    Ok(())
}

/// Fails if other users may change a file with a key.
pub fn check_permissions(path: &Path) -> io::Result<()> {
    refuse_permissions(path, WRITABLE_BY_OTHERS, "other users may write to it", "go-w")
}

/// Fails if other users may change a file with a private key, or all users may read it.
pub fn check_private_permissions(path: &Path) -> io::Result<()> {
    check_permissions(path)?;
    refuse_permissions(path, READABLE_BY_ALL, "all users may read it", "o-r")
}

fn refuse_permissions(path: &Path, refused: u32, problem: &str, change: &str) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & refused == 0 {
        return Ok(());
    }
    let message = format!("{problem} (mode {:o}): use chmod {change}", mode & 0o777);
    Err(io::Error::new(ErrorKind::PermissionDenied, message))
}

fn read_key(path: &Path) -> Result<Option<Pak>, KeyError> {
    match check_permissions(path).and_then(|()| std::fs::read_to_string(path)) {
        Ok(text) => Pak::parse(text.trim()).map(Some).map_err(|error| file_error(path, &error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path, &error)),
    }
}

fn file_error(path: &Path, reason: &dyn Error) -> KeyError {
    KeyError::File { path: path.display().to_string(), reason: reason.to_string() }
}

/// Creates a key and its file. Returns the key of the file, and true if this process has created it: another broker with
/// the same file may be faster.
fn write_new_key(path: &Path, entropy: &Entropy) -> Result<(Pak, bool), KeyError> {
    let pak = Pak::generate(entropy);
    match write_key(path, &pak) {
        Ok(()) => Ok((pak, true)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let existing = read_key(path)?.ok_or_else(|| file_error(path, &error))?;
            Ok((existing, false))
        }
        Err(error) => Err(file_error(path, &error)),
    }
}

/// Writes the file atomically, readable by its owner only. Fails if it exists.
fn write_key(path: &Path, pak: &Pak) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".draft-{}", std::process::id()));
    let draft = PathBuf::from(draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = writeln!(file, "{}", pak.reveal()).and_then(|()| file.sync_all());
    // A link, because a rename would replace the file of another broker.
    let linked = written.and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft)?;
    linked
}
