//! The broker as a value.

use std::sync::Arc;
use std::time::Duration;

use sindri_model::{Clock, Entropy, Pak};

use crate::api::BODY_BYTES_MAX;
use crate::etags::Etags;
use crate::metrics::Metrics;
use crate::request_id::RequestIds;
use crate::store::{KeyRecord, Store, StoreError};

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

/// A broker. Cheap to clone; clones are the same broker.
#[derive(Clone)]
pub struct Broker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) etags: Arc<Etags>,
    pub(crate) bounds: Bounds,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) request_ids: Arc<RequestIds>,
}

impl Broker {
    /// A broker over a store that nothing else writes to.
    pub fn new(store: impl Store + 'static, clock: Clock, entropy: Entropy) -> Self {
        Self {
            request_ids: Arc::new(RequestIds::new(&entropy)),
            store: Arc::new(store),
            clock,
            entropy,
            etags: Arc::default(),
            bounds: Bounds::default(),
            metrics: Arc::default(),
        }
    }

    /// The same broker with other bounds.
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Whether the store has an administrator's key: false only before the first start is complete.
    pub async fn has_admin(&self) -> Result<bool, StoreError> {
        self.store.has_admin().await
    }

    /// Makes `pak` the administrator's key, unless there is one; says whether it did.
    pub async fn initialise(&self, pak: &Pak) -> Result<bool, StoreError> {
        self.store.create_admin(KeyRecord::from(pak), self.clock.now()).await
    }
}
