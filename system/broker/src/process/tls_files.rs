//! Certificate and key files, which are read again when they change.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sindri_broker::{Tls, TlsError};
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time between two checks of the files. SIGHUP checks at once.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The certificate files cannot be used.
#[derive(Debug, Error)]
pub enum TlsFilesError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The content of the files cannot be used.
    #[error("{path}: {source}")]
    Pair {
        /// Path of the certificate.
        path: String,
        /// Cause.
        source: TlsError,
    },
    /// The signal handler cannot be installed.
    #[error("cannot listen for signals: {0}")]
    Signal(io::Error),
}

/// Inode, size and modification time, by which a change is detected without reading the file.
type FileVersion = (u64, u64, i64, i64);

/// The certificate and key of a server, followed for changes.
pub struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    tls: Tls,
    hangup: Signal,
    last_versions: [Option<FileVersion>; 2],
}

impl TlsFiles {
    /// Reads both files.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsFilesError> {
        let hangup = signal(SignalKind::hangup()).map_err(TlsFilesError::Signal)?;
        let last_versions = [read_file_version(certificate), read_file_version(key)];
        let tls = Tls::from_pem(&read_file(certificate)?, &read_file(key)?)
            .map_err(|source| pair_error(certificate, source))?;
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), tls, hangup, last_versions })
    }

    /// Returns the TLS configuration, which follows the files.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads the files again whenever they change. An invalid pair is logged once, and the previous one stays in use.
    pub async fn follow(mut self) -> Infallible {
        loop {
            tokio::select! {
                biased; // The signal before the timer.
                _ = self.hangup.recv() => {}
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            // Read before the content, so that a change in between is detected at the next check.
            let current = [read_file_version(&self.certificate), read_file_version(&self.key)];
            if current == self.last_versions {
                continue;
            }
            self.last_versions = current;
            match self.reload() {
                Ok(()) => tracing::info!("the certificate was replaced"),
                Err(error) => tracing::error!(%error, "the certificate was not replaced"),
            }
        }
    }

    fn reload(&self) -> Result<(), TlsFilesError> {
        let (certificate, key) = (read_file(&self.certificate)?, read_file(&self.key)?);
        self.tls.replace(&certificate, &key).map_err(|source| pair_error(&self.certificate, source))
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    std::fs::read(path).map_err(|source| TlsFilesError::Read { path: path.display().to_string(), source })
}

fn pair_error(certificate: &Path, source: TlsError) -> TlsFilesError {
    TlsFilesError::Pair { path: certificate.display().to_string(), source }
}

fn read_file_version(path: &Path) -> Option<FileVersion> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}
