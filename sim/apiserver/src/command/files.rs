//! Files that the program reads and writes, and the errors of its start.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Error that prevents the program from starting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot start: {0}")]
    Runtime(#[source] std::io::Error),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error("cannot write the {role} {path}: {source}", path = path.display())]
    Write { role: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot use the certificates: {0}")]
    Certificates(String),
    #[error("--{flag}: {message}")]
    Flag { flag: String, message: String },
}

impl StartError {
    /// Returns 2 for errors that the user can correct, 1 for others.
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

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, StartError> {
    std::fs::read_to_string(path).map_err(|source| StartError::Read { path: path.to_owned(), source })
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), StartError> {
    write_as("file", path, text)
}

/// Writes a file that only its owner may read. Errors name its role.
pub(super) fn write_as(role: &'static str, path: &Path, text: &str) -> Result<(), StartError> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| StartError::Write { role, path: path.to_owned(), source })
}
