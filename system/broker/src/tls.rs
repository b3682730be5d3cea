//! TLS of the server: the certificate for new connections, which can be replaced. Open connections keep theirs.
//!
//! The cryptography provider is set here and not taken from the process.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// A certificate and its key cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The PEM of the certificates is invalid.
    #[error("the certificate cannot be read: {0}")]
    Certificate(pem::Error),
    /// The PEM has no certificate.
    #[error("the file has no certificate")]
    NoCertificate,
    /// The PEM of the key is invalid or has no key.
    #[error("the key cannot be read: {0}")]
    Key(pem::Error),
    /// The certificate does not match the key, or one of them is not supported.
    #[error("the certificate and the key cannot be used together: {0}")]
    Pair(rustls::Error),
}

/// Certificate for new connections. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    /// Reads a certificate with its chain, and its key, both in PEM.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(build_config(certificates, key)?))))
    }

    /// Replaces the certificate for new connections. If the new pair cannot be used, the old one stays.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let config = build_config(certificates, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn build_config(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(TlsError::Certificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
