//! Certificates of the server: a certificate authority, created at each start, and the certificates that it signs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, CertificateSigningRequestDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::certificate_subject::with_subject_of;
use super::files::{self, StartError};
use sindri_apiserver::{CertificateSigner, CertificateTerms, HTTP_2, Timestamp};

/// A certificate with its key, both in PEM.
pub(super) struct CertificatePair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Certificate authority for the server and its clients.
pub(super) struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// Certificate of the authority, in PEM.
    pub(super) certificate: String,
}

fn certificate_error(error: impl std::fmt::Display) -> StartError {
    StartError::Certificates(error.to_string())
}

impl CertificateAuthority {
    /// Creates a new authority.
    pub(super) fn new() -> Result<Self, StartError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "sindri-apiserver");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(certificate_error)?;
        let certificate = params.self_signed(&key).map_err(certificate_error)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Creates a certificate for a server with these names and addresses.
    pub(super) fn issue_server(&self, names: &[String]) -> Result<CertificatePair, StartError> {
        let mut params = CertificateParams::new(names.to_vec()).map_err(certificate_error)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.create_pair(&params)
    }

    /// Creates a certificate for a user who is a member of a group.
    pub(super) fn issue_client(&self, user: &str, group: &str) -> Result<CertificatePair, StartError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.distinguished_name.push(DnType::CommonName, user);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.create_pair(&params)
    }

    fn create_pair(&self, params: &CertificateParams) -> Result<CertificatePair, StartError> {
        let key = KeyPair::generate().map_err(certificate_error)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(certificate_error)?.pem();
        Ok(CertificatePair { certificate, key: key.serialize_pem() })
    }
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CertificateAuthority").finish_non_exhaustive()
    }
}

impl CertificateSigner for CertificateAuthority {
    fn sign(&self, pem: &str, terms: &CertificateTerms) -> Result<String, String> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        let mut request = CertificateSigningRequestParams::from_pem(pem).map_err(|error| error.to_string())?;
        let time = |timestamp: Timestamp| {
            let seconds = u64::try_from(timestamp.as_second()).unwrap_or_default();
            date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
        };
        let has = |usage: &str| terms.usages.iter().any(|other| other == usage);
        let params = &mut request.params;
        params.not_before = time(terms.not_before);
        params.not_after = time(terms.not_after);
        let usages = [
            ("digital signature", KeyUsagePurpose::DigitalSignature),
            ("key encipherment", KeyUsagePurpose::KeyEncipherment),
        ];
        params.key_usages = usages.into_iter().filter(|(usage, _)| has(usage)).map(|(_, purpose)| purpose).collect();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        // The holder must not sign certificates of other users, also if the request asks for it.
        params.is_ca = IsCa::ExplicitNoCa;
        let certificate = request.signed_by(&self.issuer).map_err(|error| error.to_string())?;
        let certificate = with_subject_of(&der, certificate.der(), self.issuer.key());
        certificate.map(|certificate| to_pem(&certificate)).ok_or_else(|| "the request has no subject".to_owned())
    }
}

/// Returns a certificate in PEM.
fn to_pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    // Base64 is ASCII.
    let lines: Vec<String> =
        text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Returns a TLS configuration with this certificate that accepts client certificates of these authorities.
pub(super) fn server_config(pair: &CertificatePair, authorities: &[String]) -> Result<Arc<ServerConfig>, StartError> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for pem in authorities {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(certificate_error)?).map_err(certificate_error)?;
        }
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = verifier.allow_unauthenticated().build().map_err(certificate_error)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(certificate_error)?;
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(certificate_error)?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(chain.map_err(certificate_error)?, key).map_err(certificate_error)?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Reads a pair from two files.
pub(super) fn read_pair(certificate: &Path, key: &Path) -> Result<CertificatePair, StartError> {
    Ok(CertificatePair { certificate: files::read(certificate)?, key: files::read(key)? })
}

/// Writes a pair as `NAME.crt` and `NAME.key`.
pub(super) fn write_pair(directory: &Path, name: &str, pair: &CertificatePair) -> Result<(), StartError> {
    let file = |ending: &str| -> PathBuf { directory.join(format!("{name}.{ending}")) };
    files::write_private(&file("crt"), &pair.certificate)?;
    files::write_private(&file("key"), &pair.key)
}
