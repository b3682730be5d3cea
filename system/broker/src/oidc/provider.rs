//! The provider: fetches its keys when they are needed.
//!
//! A request only looks into the cache, and waits for the next keys if its own is not there. The fetch itself belongs to a background
//! loop, so that it goes on if the client of that request disconnects.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use jiff::Timestamp;
use serde::Deserialize;
use sindri_client::is_secure_endpoint;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::key_cache::{KeyCache, Lookup};
use super::keys::{KeySet, PublicKey};
use super::settings::OidcSettings;
use super::token::{Person, TokenError, UnverifiedToken};

/// Longest time for which a request waits for keys. A fetch is two documents, each with a limit of its own.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Path of the description of a provider, below its URL.
const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";

/// Function that fetches a document by HTTP, with limits on its time and size. The error says what is wrong.
pub type FetchDocument = Arc<dyn Fn(Uri) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> + Send + Sync>;

/// A provider whose tokens are accepted.
pub struct OidcProvider {
    settings: OidcSettings,
    fetch: FetchDocument,
    /// Requests that wait for keys watch it.
    cache: watch::Sender<KeyCache>,
    /// Wakes the loop that fetches keys.
    wanted: Notify,
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
        Self { settings, fetch, cache: watch::Sender::new(KeyCache::default()), wanted: Notify::new() }
    }

    /// Returns the URL of the provider.
    pub(crate) fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Verifies a token with the cached keys, and returns the person whom it names; `None` if its key must be fetched first.
    pub(crate) fn verify_cached(&self, token: &str, now: Timestamp) -> Option<Result<Person, TokenError>> {
        let token = match UnverifiedToken::parse(token) {
            Ok(token) => token,
            Err(error) => return Some(Err(error)),
        };
        let key = self.find_cached(token.key_id())?;
        Some(key.and_then(|key| token.verify(&key, &self.settings, now)))
    }

    /// Waits until keys were fetched, if that is needed, and verifies a token.
    pub(crate) async fn verify(&self, token: &str, now: Timestamp) -> Result<Person, TokenError> {
        let token = UnverifiedToken::parse(token)?;
        let key = self.await_key(token.key_id()).await?;
        token.verify(&key, &self.settings, now)
    }

    /// Returns a cached key; `None` if it must be fetched first.
    fn find_cached(&self, id: Option<&str>) -> Option<Result<PublicKey, TokenError>> {
        let lookup = self.cache.borrow().look_up(id, Instant::now());
        match lookup {
            Lookup::Found { key, is_stale } => {
                if is_stale {
                    self.wanted.notify_one();
                }
                Some(Ok(key))
            }
            Lookup::Missing(error) => Some(Err(error)),
            Lookup::NeedsFetch => None,
        }
    }

    /// Returns a key, after the end of a fetch if it is not cached.
    async fn await_key(&self, id: Option<&str>) -> Result<PublicKey, TokenError> {
        let mut cache = self.cache.subscribe();
        // Counted before the lookup: a fetch that ends between the two is not missed.
        let ended = cache.borrow().count_ended();
        if let Some(known) = self.find_cached(id) {
            return known;
        }
        self.wanted.notify_one();
        match timeout(WAIT_MAX, cache.wait_for(|cache| cache.count_ended() > ended)).await {
            Ok(Ok(cache)) => cache.find(id, Instant::now()),
            Ok(Err(_)) | Err(_) => Err(TokenError::NoKeys),
        }
    }

    /// Fetches keys each time that a request needs them, at most as often as the cache allows.
    pub(crate) async fn fetch_wanted_keys(&self) {
        loop {
            self.wanted.notified().await;
            let began = Instant::now();
            let mut begins = false;
            self.cache.send_if_modified(|cache| {
                begins = cache.begin_fetch(began);
                false
            });
            if begins {
                let keys = self.fetch_or_warn().await;
                self.cache.send_modify(|cache| cache.end_fetch(keys, began, Instant::now()));
            }
        }
    }

    async fn fetch_or_warn(&self) -> Option<KeySet> {
        match self.fetch_keys().await {
            Ok(keys) => {
                if keys.is_empty() {
                    tracing::warn!(issuer = self.issuer(), "the provider publishes no key for RS256 or ES256");
                }
                Some(keys)
            }
            Err(reason) => {
                tracing::warn!(issuer = self.issuer(), reason, "the keys of the provider cannot be fetched");
                None
            }
        }
    }

    async fn fetch_keys(&self) -> Result<KeySet, String> {
        let issuer = self.issuer();
        let discovery = self.fetch(&format!("{}{DISCOVERY_PATH}", issuer.trim_end_matches('/'))).await?;
        let discovery: Discovery =
            serde_json::from_slice(&discovery).map_err(|error| format!("its description is not usable: {error}"))?;
        if discovery.issuer != issuer {
            return Err("its description names another issuer".to_owned());
        }
        if !is_secure_endpoint(issuer, &discovery.jwks_uri) {
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
    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;

    /// Limit on the wait of a test that fails.
    const TEST_TIMEOUT: Duration = Duration::from_secs(10);

    /// A provider with the loop that fetches its keys. Each set of keys has the number of the fetch as the id of its key.
    struct Running {
        provider: Arc<OidcProvider>,
        /// Number of fetches that have begun.
        fetches: Arc<AtomicUsize>,
        /// Permits for sets of keys, each of which is sent after one is there.
        permits: Arc<Semaphore>,
        tasks: JoinSet<()>,
    }

    impl Running {
        fn start(issuer: &'static str, described: &'static str, jwks_uri: &'static str, permits: usize) -> Self {
            let fetches = Arc::new(AtomicUsize::new(0));
            let permits = Arc::new(Semaphore::new(permits));
            let (counter, gate) = (fetches.clone(), permits.clone());
            let fetch: FetchDocument = Arc::new(move |uri| {
                let (counter, gate) = (counter.clone(), gate.clone());
                Box::pin(async move {
                    let document = if uri.path() == DISCOVERY_PATH {
                        json!({"issuer": described, "jwks_uri": jwks_uri})
                    } else {
                        let coordinate = "A".repeat(43);
                        let id = (counter.fetch_add(1, Ordering::SeqCst) + 1).to_string();
                        gate.acquire().await.map_err(|error| error.to_string())?.forget();
                        json!({"keys": [{"kty": "EC", "crv": "P-256", "x": coordinate, "y": coordinate, "kid": id}]})
                    };
                    Ok(Bytes::from(document.to_string()))
                })
            });
            let settings = OidcSettings {
                issuer: issuer.to_owned(),
                audience: "sindri".to_owned(),
                role_claim: "roles".to_owned(),
                admin_values: Vec::new(),
                reader_values: Vec::new(),
            };
            let provider = Arc::new(OidcProvider::new(settings, fetch));
            let (looping, mut tasks) = (provider.clone(), JoinSet::new());
            tasks.spawn(async move { looping.fetch_wanted_keys().await });
            Self { provider, fetches, permits, tasks }
        }

        fn new(permits: usize) -> Self {
            Self::start("https://id.example", "https://id.example", "https://id.example/keys", permits)
        }

        async fn find(&self, id: &str) -> Result<PublicKey, TokenError> {
            timeout(TEST_TIMEOUT, self.provider.await_key(Some(id))).await.expect("a key is found or refused in time")
        }

        fn count(&self) -> usize {
            self.fetches.load(Ordering::SeqCst)
        }

        /// Waits until so many fetches have begun.
        async fn await_fetches(&self, number: usize) {
            let begun = async {
                while self.count() < number {
                    tokio::task::yield_now().await;
                }
            };
            timeout(TEST_TIMEOUT, begun).await.expect("the fetch begins");
        }
    }

    #[tokio::test]
    async fn one_fetch_serves_all_and_unknown_keys_cause_no_load() {
        let running = Running::new(10);
        let (first, second) = tokio::join!(running.find("1"), running.find("1"));
        assert!(first.is_ok() && second.is_ok());
        for _ in 0..100 {
            assert_eq!(running.find("2").await, Err(TokenError::UnknownKey));
        }
        assert_eq!(running.count(), 1);
    }

    #[tokio::test]
    async fn a_fetch_goes_on_after_the_request_that_caused_it_was_dropped() {
        let mut running = Running::new(0);
        let provider = running.provider.clone();
        let request = running.tasks.spawn(async move { drop(provider.await_key(Some("1")).await) });
        running.await_fetches(1).await;
        request.abort();
        assert!(timeout(TEST_TIMEOUT, running.tasks.join_next()).await.unwrap().unwrap().is_err());
        running.permits.add_permits(1);
        assert!(running.find("1").await.is_ok(), "others need not wait for the next fetch");
        assert_eq!(running.count(), 1);
    }

    #[tokio::test]
    async fn a_cached_key_is_not_held_up_by_a_fetch() {
        let running = Running::new(1);
        assert!(running.find("1").await.is_ok());
        // As if the last fetch was long ago.
        running.provider.cache.send_modify(KeyCache::forget_last_end);
        let (provider, mut waiting) = (running.provider.clone(), JoinSet::new());
        waiting.spawn(async move { provider.await_key(Some("2")).await });
        running.await_fetches(2).await;
        assert!(matches!(running.provider.find_cached(Some("1")), Some(Ok(_))), "it needs no fetch");
        assert!(running.find("1").await.is_ok());
        assert!(running.provider.find_cached(Some("2")).is_none(), "the fetch has not ended");
        running.permits.add_permits(1);
        assert!(timeout(TEST_TIMEOUT, waiting.join_next()).await.unwrap().unwrap().unwrap().is_ok());
    }

    #[tokio::test]
    async fn descriptions_of_other_issuers_and_keys_without_tls_are_not_used() {
        for (issuer, described, jwks_uri) in [
            ("https://id.example", "https://other.example", "https://id.example/keys"),
            ("https://id.example", "https://id.example", "http://id.example/keys"),
            ("https://id.example", "https://id.example", "http://127.0.0.1/keys"),
            ("http://127.0.0.1", "http://127.0.0.1", "http://id.example/keys"),
        ] {
            let running = Running::start(issuer, described, jwks_uri, 1);
            assert_eq!(running.find("1").await, Err(TokenError::NoKeys), "{jwks_uri}");
            assert_eq!(running.count(), 0);
        }
        let local = Running::start("http://127.0.0.1", "http://127.0.0.1", "http://127.0.0.1/keys", 1);
        assert!(local.find("1").await.is_ok());
    }
}
