//! TLS configuration of clients: the certificate authorities that this machine trusts.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

/// Returns the configuration of a TLS client; `None` if the machine has no certificate authorities.
pub(crate) fn load_system_trust() -> Option<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    match builder.with_platform_verifier() {
        Ok(builder) => Some(Arc::new(builder.with_no_client_auth())),
        Err(error) => {
            tracing::warn!("the certificate authorities of this machine cannot be read: {error}");
            None
        }
    }
}
