//! Whose certificates are believed: the authorities that this machine trusts.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

/// None if there are no authorities: then nobody is believed.
pub(crate) fn system_trust() -> Option<Arc<ClientConfig>> {
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let versions = versions.with_safe_default_protocol_versions().ok()?;
    match versions.with_platform_verifier() {
        Ok(verified) => Some(Arc::new(verified.with_no_client_auth())),
        Err(error) => {
            tracing::warn!("no certificates of authorities can be read: {error}");
            None
        }
    }
}
