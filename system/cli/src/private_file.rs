//! Files that only their owner can read: tokens, contexts and new keys.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::file_lock::{FileLock, with_suffix};

/// Limit on the size of a file that is read.
const BYTES_MAX: u64 = 1024 * 1024;
/// Bits of a mode that permit something to other users.
const OTHERS: u32 = 0o077;

/// Reads a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A home directory such as /dev/null has no files either.
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {BYTES_MAX} bytes")));
    }
    Ok(Some(content))
}

/// Rejects a file that other users may read or write. A file that does not exist is accepted.
pub(crate) fn check_mode(path: &Path) -> io::Result<()> {
    let mode = match std::fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("other users may read or write it (mode {:03o}): run chmod 600", mode & 0o777)))
}

/// Creates a file for its owner only. A file that exists is an error.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Replaces the locked file at once: readers see the old or the new content.
pub(crate) fn replace(lock: &FileLock, content: &[u8]) -> io::Result<()> {
    let draft = with_suffix(lock.path(), ".draft");
    write_draft(&draft, content).and_then(|()| std::fs::rename(&draft, lock.path())).inspect_err(|_| {
        // The first error is the reason.
        drop(std::fs::remove_file(&draft));
    })
}

fn write_draft(draft: &Path, content: &[u8]) -> io::Result<()> {
    // A draft that is there is from a command that was killed: the lock is held.
    match std::fs::remove_file(draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create(draft)?;
    file.write_all(content)?;
    file.sync_all()
}
