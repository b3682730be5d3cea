//! TLS: whose certificates are believed, and what is said of one that is not.
//!
//! The provider of cryptography is named here and not taken from the process.

use std::fmt;
use std::sync::Arc;

use hyper_rustls::HttpsConnector;
use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::BuilderVerifierExt;
use thiserror::Error;

use crate::transport::Connector;

/// Names of a certificate that are shown, at most.
const NAMES_MAX: usize = 5;

/// Nobody's certificate could be believed.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The machine trusts nobody.
    #[error("this machine has no certificates of authorities: {0}")]
    System(rustls::Error),
    /// The text is broken.
    #[error("the certificates cannot be read: {0}")]
    Broken(pem::Error),
    /// There is none in it.
    #[error("there is no certificate in it")]
    Empty,
    /// One of them is no certificate of an authority.
    #[error("a certificate cannot be used: {0}")]
    Unusable(rustls::Error),
}

/// Whose certificates are believed. Cheap to clone.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Those of the authorities that this machine trusts.
    pub fn from_system() -> Result<Self, TrustError> {
        let verified = versions().with_platform_verifier().map_err(TrustError::System)?;
        Ok(Self(Arc::new(verified.with_no_client_auth())))
    }

    /// Those of these authorities, in PEM, and of nobody else.
    pub fn from_pem(certificates: &[u8]) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(certificates) {
            roots.add(certificate.map_err(TrustError::Broken)?).map_err(TrustError::Unusable)?;
        }
        if roots.is_empty() {
            return Err(TrustError::Empty);
        }
        Ok(Self(Arc::new(versions().with_root_certificates(roots).with_no_client_auth())))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

fn versions() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().expect("the provider knows the versions that are usual")
}

/// Connections of `connector`, encrypted where the address says `https`.
pub fn with_tls<C: Connector>(connector: C, trust: &Trust) -> impl Connector {
    HttpsConnector::from((connector, trust.0.clone()))
}

/// What went wrong, as it reads after "cannot be reached".
pub(crate) fn words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(fault) = error else {
        return match error {
            rustls::Error::InvalidMessage(_) => "it does not speak TLS".to_owned(),
            other => other.to_string(),
        };
    };
    match fault {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate has expired (it was valid until {})", date(not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("its certificate is not valid yet (it will be from {} on)", date(not_before))
        }
        CertificateError::UnknownIssuer => "its certificate was issued by nobody who is trusted here".to_owned(),
        CertificateError::BadSignature => {
            "its certificate names an issuer that is trusted here, and was not signed by it".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().take(NAMES_MAX).map(|name| bare(name)).collect();
            format!("its certificate is for {}, and not for {}", names.join(", "), expected.to_str())
        }
        other => format!("its certificate is not valid: {other}"),
    }
}

/// `DnsName("broker.example")` is how the library writes a name.
fn bare(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

fn date(time: &UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "a time beyond the calendar".to_owned(), |time| time.to_string())
}
