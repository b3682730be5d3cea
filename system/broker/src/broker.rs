//! The broker as a value: the state that its handlers and background loops share.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use sindri_model::wire::ConfigChange;
use sindri_model::{Clock, Entropy, Pak, Sequence};
use tokio::time::Instant;

use crate::closing_permits::ClosingPermits;
use crate::encryption_key::EncryptionKey;
use crate::figures::FiguresRefresh;
use crate::memory::{EtagKey, Memory};
use crate::metrics::Metrics;
use crate::offload::{Offload, RunOnThread};
use crate::oidc::OidcProvider;
use crate::permits::Permits;
use crate::quotas::{QuotaUsage, Quotas};
use crate::rates::Rates;
use crate::readiness::Readiness;
use crate::request_id::RequestIds;
use crate::retention::Retention;
use crate::store::{
    BundleCipher, BundleDecryptionError, KeyRecord, RetentionCutoffs, RewriteBundle, Store, StoreError, TimedStore,
    WebhookRecord, WriteContext, is_encrypted,
};
use crate::throttle::{KEYS_MAX, Throttle};
use crate::trusted_proxies::TrustedProxies;
use crate::webhooks::{DecryptionError, WebhookSettings};

/// Default limit on the body of a request.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Limit on the lists of large records that are in memory at the same time.
const LISTS_MAX: u32 = 16;
/// Limit on the lists of one holder of a key.
const LISTS_OF_HOLDER_MAX: u32 = 4;
/// Limit on the large bodies of requests that are in memory at the same time, in KiB.
const BODIES_KIB_MAX: u32 = 256 * 1024;
/// Limit on the large bodies of one holder of a key, in KiB.
const BODIES_OF_HOLDER_KIB_MAX: u32 = 32 * 1024;
/// Limit on the large target states that are sent to one agent at the same time. An agent polls once at a time.
const POLLS_OF_AGENT_MAX: u32 = 4;

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest body.
    pub body_bytes_max: usize,
    /// Longest wait of a poll.
    pub wait_max: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { body_bytes_max: BODY_BYTES_MAX, wait_max: Duration::from_secs(300) }
    }
}

/// Settings that can change while the broker runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSettings {
    /// Times for which records are kept.
    pub retention: Retention,
    /// Quotas of generators.
    pub quotas: Quotas,
}

/// Function that reads the settings again, replaces the live ones, and returns those that have changed. The error says what
/// is wrong with them.
pub type Reload = Arc<dyn Fn(&Broker) -> Result<Vec<ConfigChange>, String> + Send + Sync>;

/// Numbers of what was encrypted with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotatedSecrets {
    /// Subscriptions.
    pub webhooks: usize,
    /// Bundles.
    pub bundles: usize,
}

/// Bundles that one transaction encrypts with another key.
const REENCRYPTED_AT_ONCE: i64 = 16;

/// Default time without a heartbeat after which an agent counts as offline.
const OFFLINE_AFTER: Duration = Duration::from_secs(120);

/// A broker. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct Broker(Arc<BrokerState>);

/// State of a broker. Behind one pointer, because every request clones it.
pub struct BrokerState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) memory: Arc<Memory>,
    pub(crate) etag_key: EtagKey,
    pub(crate) bounds: Bounds,
    /// Time without a heartbeat after which an agent counts as offline; `None` means never.
    pub(crate) offline_after: Option<Duration>,
    pub(crate) webhooks: Option<WebhookSettings>,
    /// Provider of the tokens of people, if they are accepted.
    pub(crate) oidc: Option<OidcProvider>,
    /// Cipher of stored bundles, if there is a key.
    pub(crate) bundle_cipher: Option<BundleCipher>,
    live: RwLock<LiveSettings>,
    pub(crate) quota_usage: QuotaUsage,
    pub(crate) request_rates: Rates,
    pub(crate) submission_rates: Rates,
    /// For the lists of large records.
    pub(crate) list_permits: ClosingPermits,
    /// For the large bodies of requests, in KiB.
    pub(crate) body_permits: ClosingPermits,
    /// For the large target states that are being sent.
    pub(crate) poll_permits: Permits,
    reload: Option<Reload>,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) request_ids: RequestIds,
    pub(crate) throttle: Throttle,
    pub(crate) readiness: Readiness,
    pub(crate) figures: FiguresRefresh,
    pub(crate) offload: Offload,
    /// For the serialization of lists, which do not wait behind bundles.
    pub(crate) list_offload: Offload,
}

impl Deref for Broker {
    type Target = BrokerState;

    fn deref(&self) -> &BrokerState {
        &self.0
    }
}

impl Broker {
    /// Starts a broker over a store that nothing else in this process writes to.
    pub async fn start(store: impl Into<Arc<dyn Store>>, clock: Clock, entropy: Entropy) -> Result<Self, StoreError> {
        Self::start_with(store.into(), clock, entropy).await
    }

    /// Boxed, so that it is compiled with this crate, and not with each of its users.
    fn start_with(
        store: Arc<dyn Store>,
        clock: Clock,
        entropy: Entropy,
    ) -> BoxFuture<'static, Result<Self, StoreError>> {
        Box::pin(async move {
            let (memory, metrics) = (Arc::new(Memory::default()), Arc::new(Metrics::default()));
            let recorder = metrics.clone();
            let record = Arc::new(move |is_write, duration| recorder.record_store_call(is_write, duration));
            let store = TimedStore { store, record };
            store.set_observer(memory.create_observer());
            let secret = store.get_or_create_secret(WriteContext::system(clock.now(), entropy.clone())).await?;
            let throttle = Throttle::default();
            load_known_keys(&store, &throttle).await?;
            Ok(Self(Arc::new(BrokerState {
                request_ids: RequestIds::new(&entropy),
                store: Arc::new(store),
                clock,
                entropy,
                memory,
                etag_key: EtagKey::new(&secret),
                bounds: Bounds::default(),
                offline_after: Some(OFFLINE_AFTER),
                webhooks: None,
                oidc: None,
                bundle_cipher: None,
                live: RwLock::default(),
                quota_usage: QuotaUsage::default(),
                request_rates: Rates::default(),
                submission_rates: Rates::default(),
                list_permits: ClosingPermits::new(LISTS_MAX, LISTS_OF_HOLDER_MAX),
                body_permits: ClosingPermits::new(BODIES_KIB_MAX, BODIES_OF_HOLDER_KIB_MAX),
                poll_permits: Permits::new(u32::MAX, POLLS_OF_AGENT_MAX),
                reload: None,
                trusted_proxies: TrustedProxies::default(),
                metrics,
                figures: FiguresRefresh::default(),
                throttle,
                readiness: Readiness::default(),
                offload: Offload::new(None),
                list_offload: Offload::new(None),
            })))
        })
    }

    /// Sets the settings of webhooks, without which none are delivered.
    pub fn with_webhooks(self, settings: WebhookSettings) -> Self {
        self.configure(|state| state.webhooks = Some(settings))
    }

    /// Accepts the tokens that a provider issues to people.
    pub fn with_oidc(self, provider: OidcProvider) -> Self {
        self.configure(|state| state.oidc = Some(provider))
    }

    /// Sets the cipher of stored bundles, without which encrypted ones cannot be read and new ones are not encrypted.
    pub fn with_bundle_cipher(self, cipher: BundleCipher) -> Self {
        self.store.set_bundle_cipher(cipher.clone());
        self.configure(|state| state.bundle_cipher = Some(cipher))
    }

    /// Sets the times for which records are kept.
    pub fn with_retention(self, retention: Retention) -> Self {
        let settings = LiveSettings { retention, ..self.live_settings() };
        self.replace_live_settings(settings);
        self
    }

    /// Sets the quotas of generators.
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        let settings = LiveSettings { quotas, ..self.live_settings() };
        self.replace_live_settings(settings);
        self
    }

    /// Sets the function that reads the settings again. Without it they cannot be reloaded.
    pub fn with_reload(self, reload: Reload) -> Self {
        self.configure(|state| state.reload = Some(reload))
    }

    /// Returns the settings that can change while the broker runs.
    pub fn live_settings(&self) -> LiveSettings {
        // A write replaces the whole value, so a poisoned lock is safe to use.
        *self.live.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the settings that can change while the broker runs.
    pub fn replace_live_settings(&self, settings: LiveSettings) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Reads the settings again, and returns those that have changed; `None` if they cannot be read again.
    pub fn reload(&self) -> Option<Result<Vec<ConfigChange>, String>> {
        self.reload.as_ref().map(|reload| reload(self))
    }

    /// Sets the proxies whose `X-Forwarded-For` names the client.
    pub fn with_trusted_proxies(self, proxies: TrustedProxies) -> Self {
        self.configure(|state| state.trusted_proxies = proxies)
    }

    /// Sets the limits of requests.
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        self.configure(|state| state.bounds = bounds)
    }

    /// Sets the time without a heartbeat after which an agent counts as offline; with `None`, never.
    pub fn with_offline_after(self, offline_after: Option<Duration>) -> Self {
        self.configure(|state| state.offline_after = offline_after)
    }

    /// Sets the function with which long computations run on another thread. Without it they run inline.
    pub fn with_threads(self, run: RunOnThread) -> Self {
        self.configure(|state| {
            state.offload = Offload::new(Some(run.clone()));
            state.list_offload = Offload::new(Some(run));
        })
    }

    /// Changes the state before the broker is served, while it has no clones.
    fn configure(mut self, change: impl FnOnce(&mut BrokerState)) -> Self {
        change(Arc::get_mut(&mut self.0).expect("a broker is configured before it is cloned"));
        self
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns true if the store has an administrator's key: false only before the first start is complete.
    pub async fn has_admin_key(&self) -> Result<bool, StoreError> {
        self.store.has_admin_key().await
    }

    /// Stores `pak` as the administrator's key unless there is one; returns true if it did.
    pub async fn create_admin_key(&self, pak: &Pak) -> Result<bool, StoreError> {
        let is_created = self.store.create_admin_key(self.write_context(), KeyRecord::from(pak)).await?;
        if is_created {
            self.throttle.record_success(pak.short());
        }
        Ok(is_created)
    }

    /// Checks that the encryption key decrypts the stored subscriptions; call it before the broker serves. The inner error
    /// names a subscription that cannot be decrypted.
    pub async fn check_encryption_key(&self) -> Result<Result<(), DecryptionError>, StoreError> {
        let Some(sample) = self.store.get_any_webhook().await? else { return Ok(Ok(())) };
        let id = sample.public.id;
        Ok(match &self.webhooks {
            Some(settings) => settings.decrypt_all(id, &sample.encrypted).map(drop),
            None => Err(DecryptionError(id)),
        })
    }

    /// Checks that encrypted bundles can be decrypted, if there are any; call it before the broker serves.
    pub async fn check_bundle_cipher(&self) -> Result<Result<(), BundleDecryptionError>, StoreError> {
        let Some((revision, stored)) = self.store.get_encrypted_bundle().await? else { return Ok(Ok(())) };
        Ok(match &self.bundle_cipher {
            Some(cipher) => cipher.decrypt(revision, &stored).map(drop),
            None => Err(BundleDecryptionError(revision)),
        })
    }

    /// Returns true if there is a key that encrypts the confidential parts of subscriptions.
    pub fn has_encryption_key(&self) -> bool {
        self.webhooks.is_some()
    }

    /// Encrypts every encrypted bundle and the confidential parts of every subscription with another key. Call it while no
    /// broker uses the database: a running one has the old key. If it was interrupted, it continues where it stopped. Proposals
    /// are deleted.
    pub async fn rotate_encryption_key(&self, key: EncryptionKey) -> Result<RotatedSecrets, StoreError> {
        let proposals = RetentionCutoffs { expired_proposals: Some(Timestamp::MAX), ..RetentionCutoffs::default() };
        while self.store.purge(proposals.clone(), REENCRYPTED_AT_ONCE).await? > 0 {}
        let bundles = self.reencrypt_bundles(&key).await?;
        Ok(RotatedSecrets { bundles, webhooks: self.reencrypt_webhooks(key).await? })
    }

    /// Encrypts bundles with another key, and returns their number. Those that have the new key already are kept.
    async fn reencrypt_bundles(&self, key: &EncryptionKey) -> Result<usize, StoreError> {
        let Some(old) = &self.bundle_cipher else { return Ok(0) };
        let count = Arc::new(AtomicUsize::new(0));
        let mut after = Sequence::default();
        loop {
            let (old, new) = (old.clone(), BundleCipher::new(key.clone(), true));
            let (entropy, counter) = (self.entropy.clone(), count.clone());
            let reencrypt: RewriteBundle = Box::new(move |revision, stored| {
                if !is_encrypted(stored) || new.decrypt(revision, stored).is_ok() {
                    return Ok(None);
                }
                let plain = old.decrypt(revision, stored).map_err(|error| StoreError::Failed(error.to_string()))?;
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(Some(new.encrypt(&entropy, revision, &plain)))
            });
            match self.store.rewrite_bundles(after, REENCRYPTED_AT_ONCE, reencrypt).await? {
                Some(last) => after = last,
                None => return Ok(count.load(Ordering::Relaxed)),
            }
        }
    }

    /// Encrypts the confidential parts of every subscription with another key: all of them or none.
    async fn reencrypt_webhooks(&self, key: EncryptionKey) -> Result<usize, StoreError> {
        let broker = self.clone();
        let reencrypt = move |webhook: &WebhookRecord| {
            let id = webhook.public.id;
            let settings = broker.webhooks.as_ref().ok_or(DecryptionError(id));
            let encrypted =
                settings.and_then(|settings| settings.reencrypt(&key, &broker.entropy, id, &webhook.encrypted));
            encrypted.map_err(|error| StoreError::Failed(error.to_string()))
        };
        self.store.reencrypt_webhooks(self.write_context(), Box::new(reencrypt)).await
    }

    /// Creates a key, and records that it is not a guess.
    pub(crate) fn generate_pak(&self) -> Pak {
        let pak = Pak::generate(&self.entropy);
        self.throttle.record_success(pak.short());
        pak
    }

    /// Reads the known keys again if other brokers issue keys too; returns true if it did. Done at most once per second.
    pub(crate) async fn reload_known_keys(&self) -> Result<bool, StoreError> {
        let is_due = self.store.is_shared() && self.throttle.begin_reload(Instant::now());
        if is_due {
            load_known_keys(&*self.store, &self.throttle).await?;
        }
        Ok(is_due)
    }

    /// Returns the context of writes that the broker makes by itself.
    pub(crate) fn write_context(&self) -> WriteContext {
        WriteContext::system(self.clock.now(), self.entropy.clone())
    }
}

/// Records the keys of the store as known.
async fn load_known_keys(store: &dyn Store, throttle: &Throttle) -> Result<(), StoreError> {
    let shorts = store.list_key_shorts(i64::try_from(KEYS_MAX).unwrap_or(i64::MAX)).await?;
    shorts.iter().for_each(|short| throttle.record_success(short));
    Ok(())
}
