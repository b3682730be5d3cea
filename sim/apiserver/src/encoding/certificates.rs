//! Checks of certificates and of requests for them, both in PEM and Base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

fn read_blocks(encoded: &str) -> Vec<Pem> {
    let text = STANDARD.decode(encoded).unwrap_or_default();
    Pem::iter_from_buffer(&text).map_while(Result::ok).collect()
}

/// Returns the organizations of the subject of a certificate request.
pub(crate) fn request_organizations(encoded: &str) -> Vec<String> {
    let blocks = read_blocks(encoded);
    let Some(block) = blocks.first() else { return Vec::new() };
    let Ok((_, request)) = X509CertificationRequest::from_der(&block.contents) else { return Vec::new() };
    let organizations = request.certification_request_info.subject.iter_organization();
    organizations.filter_map(|name| name.as_str().ok()).map(str::to_owned).collect()
}

/// Checks the form and the signature of a certificate request.
pub(crate) fn check_request(encoded: &str) -> Result<(), String> {
    let blocks = read_blocks(encoded);
    let block = blocks.first().filter(|block| block.label == REQUEST);
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents)
        .map_err(|error| format!("asn1: structure error: {error}"))?;
    match request.verify_signature() {
        Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => Ok(()),
        Err(_) => Err("x509: signature verification failed".to_owned()),
    }
}

/// Checks that a text contains only certificates; an empty one is valid.
pub(crate) fn check_certificate(encoded: &str) -> Result<(), String> {
    if encoded.is_empty() {
        return Ok(());
    }
    let blocks = read_blocks(encoded);
    if blocks.is_empty() {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    for block in &blocks {
        if block.label != CERTIFICATE {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        X509Certificate::from_der(&block.contents).map_err(|error| format!("x509: malformed certificate: {error}"))?;
    }
    Ok(())
}
