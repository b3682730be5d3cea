//! The provider: its keys, fetched when they are needed, and cached.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::keys::{KeySet, PublicKey};
use super::settings::OidcSettings;
use super::token::{Person, TokenError, UnverifiedToken};

/// Time after which cached keys are fetched again.
const KEYS_TIME: Duration = Duration::from_secs(60 * 60);
/// Least time between two attempts to fetch keys, so that tokens with unknown keys cause no load at the provider.
const FETCH_INTERVAL: Duration = Duration::from_secs(10);
/// Path of the description of a provider, below its URL.
const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";

/// Function that fetches a document by HTTP, with limits on its time and size. The error says what is wrong.
pub type FetchDocument = Arc<dyn Fn(Uri) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> + Send + Sync>;

/// A provider whose tokens are accepted.
pub struct OidcProvider {
    settings: OidcSettings,
    fetch: FetchDocument,
    keys: RwLock<Arc<KeySet>>,
    /// Times of the last fetch. Locked while keys are fetched, so that one fetch serves all requests that wait for it.
    fetches: Mutex<Fetches>,
}

#[derive(Default)]
struct Fetches {
    attempted: Option<Instant>,
    succeeded: Option<Instant>,
}

/// The description of a provider.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl OidcProvider {
    /// Creates a provider. Its keys are fetched with the first token.
    pub fn new(settings: OidcSettings, fetch: FetchDocument) -> Self {
        Self { settings, fetch, keys: RwLock::default(), fetches: Mutex::default() }
    }

    /// Returns the URL of the provider.
    pub(crate) fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Verifies a token, and returns the person whom it names.
    pub(crate) async fn verify(&self, token: &str, now: Timestamp) -> Result<Person, TokenError> {
        let token = UnverifiedToken::parse(token)?;
        let key = self.find_key(token.key_id(), Instant::now()).await?;
        token.verify(&key, &self.settings, now)
    }

    async fn find_key(&self, id: Option<&str>, now: Instant) -> Result<PublicKey, TokenError> {
        let mut fetches = self.fetches.lock().await;
        let is_recent = |time: Option<Instant>, max: Duration| time.is_some_and(|time| now.duration_since(time) < max);
        let cached = self.cached().find(id).cloned();
        if let Some(key) = cached.clone().filter(|_| is_recent(fetches.succeeded, KEYS_TIME)) {
            return Ok(key);
        }
        if !is_recent(fetches.attempted, FETCH_INTERVAL) {
            fetches.attempted = Some(now);
            match self.fetch_keys().await {
                Ok(keys) => {
                    fetches.succeeded = Some(now);
                    *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
                    return self.cached().find(id).cloned().ok_or(TokenError::UnknownKey);
                }
                Err(reason) => {
                    tracing::warn!(issuer = self.issuer(), reason, "the keys of the provider cannot be fetched");
                }
            }
        }
        // Keys that cannot be fetched again stay valid: the provider may be away for a while.
        let missing = if fetches.succeeded.is_some() { TokenError::UnknownKey } else { TokenError::NoKeys };
        cached.ok_or(missing)
    }

    fn cached(&self) -> Arc<KeySet> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch_keys(&self) -> Result<KeySet, String> {
        let issuer = self.issuer();
        let discovery = self.fetch(&format!("{}{DISCOVERY_PATH}", issuer.trim_end_matches('/'))).await?;
        let discovery: Discovery =
            serde_json::from_slice(&discovery).map_err(|error| format!("its description is not usable: {error}"))?;
        if discovery.issuer != issuer {
            return Err("its description names another issuer".to_owned());
        }
        if issuer.starts_with("https:") && !discovery.jwks_uri.starts_with("https:") {
            return Err("its keys are not served over HTTPS".to_owned());
        }
        KeySet::parse(&self.fetch(&discovery.jwks_uri).await?)
    }

    async fn fetch(&self, url: &str) -> Result<Bytes, String> {
        let uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        (self.fetch)(uri).await.map_err(|error| format!("{url}: {error}"))
    }
}

impl fmt::Debug for OidcProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OidcProvider({})", self.issuer())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    /// Returns a provider whose set of keys has the id of the number of fetches, and the counter of these.
    fn provider(issuer: &'static str) -> (OidcProvider, Arc<AtomicUsize>) {
        let fetches = Arc::new(AtomicUsize::new(0));
        let counter = fetches.clone();
        let fetch: FetchDocument = Arc::new(move |uri| {
            let document = if uri.path() == DISCOVERY_PATH {
                json!({"issuer": issuer, "jwks_uri": "https://id.example/keys"})
            } else {
                let coordinate = "A".repeat(43);
                let id = (counter.fetch_add(1, Ordering::SeqCst) + 1).to_string();
                json!({"keys": [{"kty": "EC", "crv": "P-256", "x": coordinate, "y": coordinate, "kid": id}]})
            };
            Box::pin(std::future::ready(Ok(Bytes::from(document.to_string()))))
        });
        let settings = OidcSettings {
            issuer: "https://id.example".to_owned(),
            audience: "sindri".to_owned(),
            role_claim: "roles".to_owned(),
            admin_values: Vec::new(),
            reader_values: Vec::new(),
        };
        (OidcProvider::new(settings, fetch), fetches)
    }

    #[tokio::test]
    async fn keys_are_fetched_again_for_an_unknown_one_but_not_more_often_than_allowed() {
        let ((provider, fetches), start) = (provider("https://id.example"), Instant::now());
        assert!(provider.find_key(Some("1"), start).await.is_ok());
        assert!(provider.find_key(Some("1"), start).await.is_ok());
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
        for _ in 0..100 {
            assert_eq!(provider.find_key(Some("2"), start).await, Err(TokenError::UnknownKey));
        }
        assert_eq!(fetches.load(Ordering::SeqCst), 1, "unknown keys cause no load at the provider");
        let later = start + FETCH_INTERVAL;
        assert!(provider.find_key(Some("2"), later).await.is_ok(), "the provider has a new key");
        assert_eq!(provider.find_key(Some("1"), later).await, Err(TokenError::UnknownKey), "the old one is gone");
        let much_later = later + KEYS_TIME;
        let again = provider.find_key(Some("2"), much_later).await;
        assert_eq!(again, Err(TokenError::UnknownKey), "the keys are fetched again after an hour");
    }

    #[tokio::test]
    async fn the_description_of_another_issuer_is_not_used() {
        let (provider, fetches) = provider("https://other.example");
        assert_eq!(provider.find_key(Some("1"), Instant::now()).await, Err(TokenError::NoKeys));
        assert_eq!(fetches.load(Ordering::SeqCst), 0);
    }
}
