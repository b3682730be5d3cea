//! Certificate and key files, which are read again when they change.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sindri_broker::{Tls, TlsError};
use thiserror::Error;

use super::key::check_private_permissions;

/// Time between two checks of the files.
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
}

/// Inode, size, mode and modification time, by which a change is detected without reading the file.
type FileVersion = (u64, u64, u32, i64, i64);

/// The certificate and key of a server. Clones share the TLS configuration.
#[derive(Clone)]
pub struct TlsPair {
    certificate: PathBuf,
    key: PathBuf,
    tls: Tls,
}

impl TlsPair {
    /// Reads the files again. With an invalid pair the previous one stays in use.
    pub fn reload(&self) -> Result<(), TlsFilesError> {
        let (certificate, key) = (read_file(&self.certificate)?, read_key(&self.key)?);
        self.tls.replace(&certificate, &key).map_err(|source| pair_error(&self.certificate, source))
    }
}

/// The certificate and key of a server, followed for changes.
pub struct TlsFiles {
    pair: TlsPair,
    last_versions: [Option<FileVersion>; 2],
}

impl TlsFiles {
    /// Reads both files.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsFilesError> {
        let last_versions = [read_file_version(certificate), read_file_version(key)];
        let tls = Tls::from_pem(&read_file(certificate)?, &read_key(key)?)
            .map_err(|source| pair_error(certificate, source))?;
        let pair = TlsPair { certificate: certificate.to_owned(), key: key.to_owned(), tls };
        Ok(Self { pair, last_versions })
    }

    /// Returns the TLS configuration, which follows the files.
    pub fn tls(&self) -> Tls {
        self.pair.tls.clone()
    }

    /// Returns the files and the TLS configuration.
    pub fn pair(&self) -> TlsPair {
        self.pair.clone()
    }

    /// Reads the files again whenever they change. An invalid pair is logged once, and the previous one stays in use.
    pub async fn follow(mut self) -> Infallible {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            // Read before the content, so that a change in between is detected at the next check.
            let current = [read_file_version(&self.pair.certificate), read_file_version(&self.pair.key)];
            if current == self.last_versions {
                continue;
            }
            self.last_versions = current;
            match self.pair.reload() {
                Ok(()) => tracing::info!("the certificate was replaced"),
                Err(error) => tracing::error!(%error, "the certificate was not replaced"),
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    std::fs::read(path).map_err(|source| read_error(path, source))
}

fn read_key(path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    check_private_permissions(path).map_err(|source| read_error(path, source))?;
    read_file(path)
}

fn read_error(path: &Path, source: io::Error) -> TlsFilesError {
    TlsFilesError::Read { path: path.display().to_string(), source }
}

fn pair_error(certificate: &Path, source: TlsError) -> TlsFilesError {
    TlsFilesError::Pair { path: certificate.display().to_string(), source }
}

fn read_file_version(path: &Path) -> Option<FileVersion> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.mode(), metadata.mtime(), metadata.mtime_nsec()))
}
