//! TLS: trusted authorities, and error messages about certificates.
//!
//! The crypto provider is set here and not taken from the process default.

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

use crate::connector::Connector;

/// Maximum number of a certificate's names in a message.
const NAMES_MAX: usize = 5;

/// The trusted authorities cannot be loaded.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The machine has no trusted authorities.
    #[error("this machine has no trusted certificate authorities: {0}")]
    System(rustls::Error),
    /// The text is not PEM.
    #[error("the certificates cannot be read: {0}")]
    InvalidPem(pem::Error),
    /// The text contains no certificate.
    #[error("it contains no certificate")]
    Empty,
    /// A certificate cannot be used as a certificate authority.
    #[error("a certificate cannot be used: {0}")]
    Unusable(rustls::Error),
}

/// Trusted certificate authorities. Cheap to clone.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the authorities that this machine trusts.
    pub fn from_system() -> Result<Self, TrustError> {
        let builder = config_builder().with_platform_verifier().map_err(TrustError::System)?;
        Ok(Self(Arc::new(builder.with_no_client_auth())))
    }

    /// Trusts only these authorities, in PEM.
    pub fn from_pem(certificates: &[u8]) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(certificates) {
            roots.add(certificate.map_err(TrustError::InvalidPem)?).map_err(TrustError::Unusable)?;
        }
        if roots.is_empty() {
            return Err(TrustError::Empty);
        }
        Ok(Self(Arc::new(config_builder().with_root_certificates(roots).with_no_client_auth())))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

fn config_builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_safe_default_protocol_versions().expect("the provider supports the default versions")
}

/// Adds TLS to `connector` for `https` URLs.
pub fn with_tls<C: Connector>(connector: C, trust: &Trust) -> impl Connector {
    HttpsConnector::from((connector, trust.0.clone()))
}

/// Describes a TLS error, to follow "cannot be reached".
pub(crate) fn describe_tls_error(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(certificate_error) = error else {
        return match error {
            rustls::Error::InvalidMessage(_) => "it does not speak TLS".to_owned(),
            other => other.to_string(),
        };
    };
    match certificate_error {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate has expired (it was valid until {})", format_date(not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("its certificate is not valid yet (it is valid from {} on)", format_date(not_before))
        }
        CertificateError::UnknownIssuer => {
            "its certificate was issued by an authority that is not trusted here".to_owned()
        }
        CertificateError::BadSignature => "its certificate names a trusted issuer but was not signed by it".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().take(NAMES_MAX).map(|name| extract_name(name)).collect();
            format!("its certificate is for {}, not for {}", names.join(", "), expected.to_str())
        }
        other => format!("its certificate is not valid: {other}"),
    }
}

/// Returns the name in `DnsName("broker.example")` or `IpAddress(10.0.0.1)`, the library's formats.
fn extract_name(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

fn format_date(time: &UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::extract_name;

    #[test]
    fn a_name_is_shown_without_the_format_of_the_library() {
        for (name, shown) in [
            ("DnsName(\"broker.example\")", "broker.example"),
            ("IpAddress(10.0.0.1)", "10.0.0.1"),
            ("IpAddress(::1)", "::1"),
            ("other", "other"),
        ] {
            assert_eq!(extract_name(name), shown);
        }
    }
}
