//! The broker as a value: what its handlers share.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use sindri_model::{Clock, Entropy, Pak};

use crate::memory::{EtagKey, Memory};
use crate::metrics::Metrics;
use crate::request_id::RequestIds;
use crate::store::{KeyRecord, Store, StoreError, WriteContext};
use crate::throttle::Throttle;
use crate::webhooks::{Unopened, WebhookSettings};

/// The largest body that is accepted, unless the broker was made with another bound.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// How much one request may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The largest body.
    pub body_bytes_max: usize,
    /// The longest wait of a poll.
    pub wait_max: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { body_bytes_max: BODY_BYTES_MAX, wait_max: Duration::from_secs(300) }
    }
}

/// How long an agent may be silent before subscribers are told, unless the broker was made with another bound.
const OFFLINE_AFTER: Duration = Duration::from_secs(120);

/// A broker. Cheap to clone; clones are the same broker.
#[derive(Clone)]
pub struct Broker(Arc<Parts>);

/// What a broker has. Behind one pointer: every request has a clone of it.
pub struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) memory: Arc<Memory>,
    pub(crate) etag_key: EtagKey,
    pub(crate) bounds: Bounds,
    /// Nothing means never.
    pub(crate) offline_after: Option<Duration>,
    pub(crate) webhooks: Option<WebhookSettings>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) request_ids: RequestIds,
    pub(crate) throttle: Throttle,
}

impl Deref for Broker {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Broker {
    /// A broker over a store that nothing else in this process writes to.
    pub async fn start(store: impl Store + 'static, clock: Clock, entropy: Entropy) -> Result<Self, StoreError> {
        let memory = Arc::new(Memory::default());
        store.set_observer(memory.watcher());
        let secret = store.get_or_create_secret(WriteContext::system(clock.now(), entropy.clone())).await?;
        Ok(Self(Arc::new(Parts {
            request_ids: RequestIds::new(&entropy),
            store: Arc::new(store),
            clock,
            entropy,
            memory,
            etag_key: EtagKey::new(&secret),
            bounds: Bounds::default(),
            offline_after: Some(OFFLINE_AFTER),
            webhooks: None,
            metrics: Arc::default(),
            throttle: Throttle::default(),
        })))
    }

    /// The same broker, which sends messages to subscribers.
    pub fn with_webhooks(self, settings: WebhookSettings) -> Self {
        self.changed(|parts| parts.webhooks = Some(settings))
    }

    /// The same broker with other bounds.
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        self.changed(|parts| parts.bounds = bounds)
    }

    /// The same broker, which tells subscribers of agents that were silent for longer than this; without it, of none.
    pub fn with_offline_after(self, offline_after: Option<Duration>) -> Self {
        self.changed(|parts| parts.offline_after = offline_after)
    }

    /// Before it is served: afterwards there are clones, which keep what they have.
    fn changed(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::get_mut(&mut self.0).expect("a broker is changed before it is cloned"));
        self
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Whether the store has an administrator's key: false only before the first start is complete.
    pub async fn has_admin(&self) -> Result<bool, StoreError> {
        self.store.has_admin_key().await
    }

    /// Makes `pak` the administrator's key, unless there is one; says whether it did.
    pub async fn initialise(&self, pak: &Pak) -> Result<bool, StoreError> {
        self.store.create_admin_key(self.stamp(), KeyRecord::from(pak)).await
    }

    /// Whether the key opens what is stored under it: to be asked before the broker serves. An error names the
    /// subscription that it does not open; without a key, any.
    pub async fn check_sealing_key(&self) -> Result<Result<(), Unopened>, StoreError> {
        let Some(sample) = self.store.get_any_webhook().await? else { return Ok(Ok(())) };
        let id = sample.public.id;
        Ok(match &self.webhooks {
            Some(settings) => settings.open_all(id, &sample.sealed).map(drop),
            None => Err(Unopened(id)),
        })
    }

    /// For what the broker does by itself.
    pub(crate) fn stamp(&self) -> WriteContext {
        WriteContext::system(self.clock.now(), self.entropy.clone())
    }
}
