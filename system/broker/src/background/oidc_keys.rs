//! Fetches the keys of the provider of people's tokens.

use crate::broker::Broker;

impl Broker {
    /// Fetches keys when a request needs them. It ends at once if no tokens are accepted.
    pub(super) async fn fetch_oidc_keys(&self) {
        if let Some(provider) = &self.oidc {
            provider.fetch_wanted_keys().await;
        }
    }
}
