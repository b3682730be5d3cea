//! A lock beside a file, so that commands that run at the same time change the file one after another.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use crate::failure::Failure;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Limit on the attempts: longer than a command holds the lock, which is the time of one request.
const ATTEMPTS_MAX: u32 = 600;

/// The right to change a file, until it is dropped or the process ends.
pub(crate) struct FileLock {
    path: PathBuf,
    _file: File,
}

impl FileLock {
    /// Waits until no other command has the right, and creates the directory of the file if there is none.
    pub(crate) async fn acquire(path: &Path) -> Result<Self, Failure> {
        let to_failure = |error: io::Error| Failure::Operation(format!("{} cannot be locked: {error}", path.display()));
        let file = open(path).map_err(to_failure)?;
        for _ in 0..ATTEMPTS_MAX {
            match file.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), _file: file }),
                Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(to_failure(error)),
            }
        }
        Err(Failure::Operation(format!("{} is locked by another command", path.display())))
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(with_suffix(path, ".lock"))
}

/// Returns a path beside another one.
pub(crate) fn with_suffix(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(suffix);
    PathBuf::from(text)
}
