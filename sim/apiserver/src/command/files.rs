//! Files that the program reads and writes, and what can go wrong at its start.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why the program did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot start: {0}")]
    Runtime(#[source] std::io::Error),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error("cannot write the {what} {path}: {source}", path = path.display())]
    Write { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the certificates cannot be used: {0}")]
    Certificates(String),
    #[error("--{flag}: {why}")]
    Flag { flag: String, why: String },
}

impl StartError {
    /// 2 for what the user can put right, 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Runtime(_) => ExitCode::from(1),
            Self::Listen { .. }
            | Self::Write { .. }
            | Self::Read { .. }
            | Self::Certificates(_)
            | Self::Flag { .. } => ExitCode::from(2),
        }
    }
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, StartError> {
    std::fs::read_to_string(path).map_err(|source| StartError::Read { path: path.to_owned(), source })
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), StartError> {
    write_as("file", path, text)
}

/// Writes a file that only its owner may read, which errors call by this name.
pub(super) fn write_as(what: &'static str, path: &Path, text: &str) -> Result<(), StartError> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| StartError::Write { what, path: path.to_owned(), source })
}
