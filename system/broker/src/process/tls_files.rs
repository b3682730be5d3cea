//! The certificate and its key as files, read again when they change.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sindri_broker::{Tls, TlsError};
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often the files are looked at. A hangup signal looks at once.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The files cannot be used.
#[derive(Debug, Error)]
pub enum TlsFilesError {
    /// One of them cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Of the file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What they hold cannot be used.
    #[error("{path}: {source}")]
    Pair {
        /// Of the certificate.
        path: String,
        /// Why.
        source: TlsError,
    },
    /// The signal cannot be listened for.
    #[error("cannot listen for signals: {0}")]
    Signal(io::Error),
}

/// What tells one content of a file from another without reading it.
type Stamp = (u64, u64, i64, i64);

/// See the module.
pub struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    tls: Tls,
    hangup: Signal,
    seen: [Option<Stamp>; 2],
}

impl TlsFiles {
    /// Reads both.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsFilesError> {
        let hangup = signal(SignalKind::hangup()).map_err(TlsFilesError::Signal)?;
        let seen = [stamp(certificate), stamp(key)];
        let tls = Tls::from_pem(&read(certificate)?, &read(key)?).map_err(|source| unusable(certificate, source))?;
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), tls, hangup, seen })
    }

    /// What they hold now and will hold later.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads them again whenever they change. A broken pair is told once, and the one before stays.
    pub async fn follow(mut self) -> Infallible {
        loop {
            tokio::select! {
                biased; // Who asks is served before the clock.
                _ = self.hangup.recv() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            // Taken before the content: what changes in between is read the next time.
            let found = [stamp(&self.certificate), stamp(&self.key)];
            if found == self.seen {
                continue;
            }
            self.seen = found;
            match self.reload() {
                Ok(()) => tracing::info!("the certificate was replaced"),
                Err(error) => tracing::error!(%error, "the certificate was not replaced"),
            }
        }
    }

    fn reload(&self) -> Result<(), TlsFilesError> {
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        self.tls.replace(&certificate, &key).map_err(|source| unusable(&self.certificate, source))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    std::fs::read(path).map_err(|source| TlsFilesError::Read { path: path.display().to_string(), source })
}

fn unusable(certificate: &Path, source: TlsError) -> TlsFilesError {
    TlsFilesError::Pair { path: certificate.display().to_string(), source }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}
