//! TLS to a PostgreSQL server, as the URL asks for it.
//!
//! `sslmode` and `sslrootcert` have the names of libpq. Unlike there, a connection with TLS is always authenticated:
//! `require` and `prefer` accept no certificate that `verify-full` rejects.

use std::str::FromStr;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::error::PostgresError;
use crate::trust::load_system_trust;

/// Name of the parameter with the mode.
const MODE: &str = "sslmode";
/// Name of the parameter with a file of certificate authorities.
const ROOT_FILE: &str = "sslrootcert";

/// Reads a URL: the settings of connections, and their TLS.
pub(super) fn read_url(url: &str) -> Result<(Config, ClientConfig), PostgresError> {
    let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
    let (mut mode, mut roots, mut others) = (None, None, Vec::new());
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some((MODE, value)) => mode = Some(TlsMode::parse(value)?),
            Some((ROOT_FILE, value)) => roots = Some(decode(value)?),
            _ => others.push(parameter),
        }
    }
    let rest = if others.is_empty() { address.to_owned() } else { format!("{address}?{}", others.join("&")) };
    let mut config = Config::from_str(&rest).map_err(|error| PostgresError::Address(error.to_string()))?;
    // A connection without TLS ignores the authorities, which shows only in an attack.
    let mode = mode.unwrap_or(if roots.is_some() { TlsMode::VerifyFull } else { TlsMode::Prefer });
    config.ssl_mode(match mode {
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
    });
    Ok((config, build_config(mode, roots.as_deref())?))
}

/// Use of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsMode {
    Disable,
    /// TLS if the server supports it.
    Prefer,
    /// The certificate may have any name.
    VerifyCa,
    VerifyFull,
}

impl TlsMode {
    fn parse(text: &str) -> Result<Self, PostgresError> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "verify-ca" => Ok(Self::VerifyCa),
            "require" | "verify-full" => Ok(Self::VerifyFull),
            _ => Err(PostgresError::Address(format!(
                "{MODE}={text} is none of disable, prefer, require, verify-ca and verify-full"
            ))),
        }
    }
}

fn build_config(mode: TlsMode, root_file: Option<&str>) -> Result<ClientConfig, PostgresError> {
    match (mode, root_file) {
        (TlsMode::Disable, _) => Ok(trust_authorities(RootCertStore::empty())),
        (TlsMode::VerifyCa, None) => Err(PostgresError::Address(format!("{MODE}=verify-ca needs {ROOT_FILE}"))),
        (TlsMode::VerifyCa, Some(file)) => trust_authorities_for_any_name(load_authorities(file)?),
        (TlsMode::Prefer | TlsMode::VerifyFull, Some(file)) => Ok(trust_authorities(load_authorities(file)?)),
        (TlsMode::Prefer | TlsMode::VerifyFull, None) => {
            let trust = load_system_trust();
            Ok(trust.map_or_else(|| trust_authorities(RootCertStore::empty()), |trust| (*trust).clone()))
        }
    }
}

/// Reads the certificate authorities of a PEM file.
fn load_authorities(file: &str) -> Result<RootCertStore, PostgresError> {
    let invalid = |reason: String| PostgresError::Authorities { file: file.to_owned(), reason };
    let mut authorities = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| invalid(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        authorities.add(certificate).map_err(|error| invalid(error.to_string()))?;
    }
    if authorities.is_empty() { Err(invalid("it has no certificate".to_owned())) } else { Ok(authorities) }
}

fn trust_authorities(authorities: RootCertStore) -> ClientConfig {
    builder().with_root_certificates(authorities).with_no_client_auth()
}

fn trust_authorities_for_any_name(authorities: RootCertStore) -> Result<ClientConfig, PostgresError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider())
        .build()
        .map_err(|error| PostgresError::Address(error.to_string()))?;
    let verifier = Arc::new(AnyName(verifier));
    Ok(builder().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions of TLS")
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Verifies the issuer of a certificate, and not its name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The name is verified last, after everything else.
        match self.0.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Decodes `%2F` and the like. A malformed escape is an error, which the crate `percent-encoding` would accept.
fn decode(text: &str) -> Result<String, PostgresError> {
    let invalid = || PostgresError::Address(format!("{ROOT_FILE}={text} is not a path"));
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let (byte, next) = match (first, after) {
            (b'%', [high, low, next @ ..]) => {
                let mut byte = [0];
                hex::decode_to_slice([*high, *low], &mut byte).map_err(|_| invalid())?;
                (byte[0], next)
            }
            _ => (first, after),
        };
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_tls_are_read_and_others_are_kept() {
        let (config, _) = read_url("postgres://me@host/db?sslmode=disable&application_name=a").unwrap();
        assert_eq!((config.get_ssl_mode(), config.get_application_name()), (SslMode::Disable, Some("a")));
        assert_eq!(read_url("postgres://me@host/db").unwrap().0.get_ssl_mode(), SslMode::Prefer);
        for mode in ["require", "verify-full"] {
            let (config, _) = read_url(&format!("postgres://me@host/db?sslmode={mode}")).unwrap();
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
        }
        assert_eq!(decode("/a%2Fb%20c").unwrap(), "/a/b c");
    }

    #[test]
    fn invalid_parameters_are_named() {
        let error =
            |parameters: &str| read_url(&format!("postgres://me@host/db?{parameters}")).unwrap_err().to_string();
        assert!(error("sslmode=verify").contains("sslmode=verify is none of disable, prefer, require"));
        assert!(error("sslmode=verify-ca").contains("sslmode=verify-ca needs sslrootcert"));
        assert!(error("sslrootcert=/no/such/file").contains("/no/such/file"));
        assert!(error("sslrootcert=%zz").contains("is not a path"));
    }
}
