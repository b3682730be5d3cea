//! TLS configuration of clients: the certificate authorities that this machine trusts.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

/// Returns the configuration of a TLS client; `None` if the machine has no certificate authorities.
pub(crate) fn system_trust() -> Option<Arc<ClientConfig>> {
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let versions = versions.with_safe_default_protocol_versions().ok()?;
    match versions.with_platform_verifier() {
        Ok(verified) => Some(Arc::new(verified.with_no_client_auth())),
        Err(error) => {
            tracing::warn!("the certificate authorities of this machine cannot be read: {error}");
            None
        }
    }
}
