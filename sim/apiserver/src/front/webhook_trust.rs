//! Trust in the certificates of webhooks, as Go has it: a certificate of the bundle counts also if it is no authority's, and the
//! texts of errors are Go's.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};
use x509_parser::parse_x509_certificate;

/// Verifier of the certificates of one webhook.
#[derive(Debug)]
pub(super) struct BundleVerifier {
    bundle: Vec<CertificateDer<'static>>,
    /// Verifies chains to the authorities of the bundle.
    chains: Arc<WebPkiServerVerifier>,
}

impl BundleVerifier {
    /// Creates a verifier for a bundle in PEM. Go ignores certificates that it cannot read; an error means that there is no other.
    pub(super) fn new(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let bundle: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem).flatten().collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(bundle.iter().cloned());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let unknown = |_| TlsError::InvalidCertificate(CertificateError::UnknownIssuer);
        Ok(Self { bundle, chains: chains.map_err(unknown)? })
    }
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        if self.bundle.iter().any(|trusted| trusted == end_entity) {
            return verify_without_chain(end_entity, server_name, now);
        }
        self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Verifies what a certificate says about itself: its time, its names and its purpose.
fn verify_without_chain(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, TlsError> {
    let (_, parsed) = parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let unix_time = |seconds: i64| UnixTime::since_unix_epoch(Duration::from_secs(seconds.try_into().unwrap_or(0)));
    let validity = parsed.validity();
    let (not_before, not_after) =
        (unix_time(validity.not_before.timestamp()), unix_time(validity.not_after.timestamp()));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    let purposes = parsed.extended_key_usage().map_err(|_| CertificateError::BadEncoding)?;
    match purposes {
        Some(purposes) if !purposes.value.any && !purposes.value.server_auth => {
            Err(CertificateError::InvalidPurpose.into())
        }
        _ => Ok(ServerCertVerified::assertion()),
    }
}

/// Describes why a certificate is not accepted, in the words of Go.
pub(super) fn describe_certificate_error(error: &CertificateError) -> String {
    match error {
        // The signature is that of another authority with the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => describe_time(*time, "after", *not_after),
        CertificateError::NotValidYetContext { time, not_before } => describe_time(*time, "before", *not_before),
        CertificateError::NotValidForNameContext { expected, presented } => describe_names(expected, presented),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        other => other.to_string(),
    }
}

fn describe_time(now: UnixTime, relation: &str, limit: UnixTime) -> String {
    let format = |time: UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
    };
    let (now, limit) = (format(now), format(limit));
    format!("certificate has expired or is not yet valid: current time {now} is {relation} {limit}")
}

/// Describes a certificate for other names, which have the forms `DnsName("a")` and `IpAddress(1.2.3.4)`.
fn describe_names(expected: &ServerName<'_>, presented: &[String]) -> String {
    let list = |form: &str| {
        let names = presented.iter().filter_map(|name| name.strip_prefix(form)?.strip_suffix(')'));
        names.map(|name| name.trim_matches('"')).collect::<Vec<_>>().join(", ")
    };
    let (name, is_address) = (expected.to_str(), matches!(expected, ServerName::IpAddress(_)));
    match (list(if is_address { "IpAddress(" } else { "DnsName(" }), is_address) {
        (names, true) if names.is_empty() => {
            format!("cannot validate certificate for {name} because it doesn't contain any IP SANs")
        }
        (names, false) if names.is_empty() => {
            format!("certificate is not valid for any names, but wanted to match {name}")
        }
        (names, _) => format!("certificate is valid for {names}, not {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_go_lists_them() {
        let presented = ["DnsName(\"a.example\")", "DnsName(\"b.example\")", "IpAddress(10.1.2.3)"].map(str::to_owned);
        let describe = |name: &str, presented: &[String]| {
            describe_names(&ServerName::try_from(name.to_owned()).unwrap(), presented)
        };
        assert_eq!(describe("127.0.0.1", &presented), "certificate is valid for 10.1.2.3, not 127.0.0.1");
        assert_eq!(describe("c.example", &presented), "certificate is valid for a.example, b.example, not c.example");
        assert_eq!(
            describe("127.0.0.1", &presented[..2]),
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
        );
        assert_eq!(describe("c.example", &[]), "certificate is not valid for any names, but wanted to match c.example");
    }
}
