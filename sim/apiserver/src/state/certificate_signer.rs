//! The signer of the certificates of clients, which the caller of a server may provide.

use jiff::Timestamp;

/// Signs certificates of clients.
pub trait CertificateSigner: std::fmt::Debug + Send + Sync {
    /// Signs a certificate request in PEM, and returns the certificate in PEM. The error is the reason for which it is not signed.
    fn sign(&self, request: &str, terms: &CertificateTerms) -> Result<String, String>;
}

/// Usages and validity of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateTerms {
    /// Start of its validity.
    pub not_before: Timestamp,
    /// End of its validity.
    pub not_after: Timestamp,
    /// Usages as in a `CertificateSigningRequest`, such as `client auth`.
    pub usages: Vec<String>,
}
