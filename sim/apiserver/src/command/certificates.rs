//! Certificates of a served machine: an authority of its own, made at each start, and what it signs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::files::{self, StartError};

/// A certificate with its key, both in PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Who signs what clients and the server show.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The certificate of the authority, in PEM.
    pub(super) certificate: String,
}

fn unusable(error: impl std::fmt::Display) -> StartError {
    StartError::Certificates(error.to_string())
}

impl Authority {
    /// A new authority.
    pub(super) fn new() -> Result<Self, StartError> {
        let mut wanted = CertificateParams::default();
        wanted.distinguished_name.push(DnType::CommonName, "sindri-apiserver");
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        wanted.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(unusable)?;
        let certificate = wanted.self_signed(&key).map_err(unusable)?.pem();
        Ok(Self { issuer: Issuer::new(wanted, key), certificate })
    }

    /// A certificate for a server of these names and addresses.
    pub(super) fn server(&self, names: &[String]) -> Result<Pair, StartError> {
        let mut wanted = CertificateParams::new(names.to_vec()).map_err(unusable)?;
        wanted.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&wanted)
    }

    /// A certificate for a user who is a member of a group.
    pub(super) fn client(&self, user: &str, group: &str) -> Result<Pair, StartError> {
        let mut wanted = CertificateParams::default();
        wanted.distinguished_name.push(DnType::OrganizationName, group);
        wanted.distinguished_name.push(DnType::CommonName, user);
        wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&wanted)
    }

    fn sign(&self, wanted: &CertificateParams) -> Result<Pair, StartError> {
        let key = KeyPair::generate().map_err(unusable)?;
        let certificate = wanted.signed_by(&key, &self.issuer).map_err(unusable)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// TLS with this certificate, for clients that may show one of these authorities.
pub(super) fn server_config(pair: &Pair, authorities: &[String]) -> Result<Arc<ServerConfig>, StartError> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for pem in authorities {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
        }
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = verifier.allow_unauthenticated().build().map_err(unusable)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(unusable)?;
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(unusable)?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(chain.map_err(unusable)?, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The pair in two files.
pub(super) fn read_pair(certificate: &Path, key: &Path) -> Result<Pair, StartError> {
    Ok(Pair { certificate: files::read(certificate)?, key: files::read(key)? })
}

/// Writes a pair as `NAME.crt` and `NAME.key`.
pub(super) fn write_pair(directory: &Path, name: &str, pair: &Pair) -> Result<(), StartError> {
    let file = |ending: &str| -> PathBuf { directory.join(format!("{name}.{ending}")) };
    files::write_private(&file("crt"), &pair.certificate)?;
    files::write_private(&file("key"), &pair.key)
}
