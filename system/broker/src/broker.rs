//! The broker as a value.

use std::sync::Arc;

use sindri_model::{Clock, Entropy, Pak};

use crate::etags::Etags;
use crate::store::{KeyRecord, Store, StoreError};

/// A broker. Cheap to clone; clones are the same broker.
#[derive(Clone)]
pub struct Broker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) etags: Arc<Etags>,
}

impl Broker {
    /// A broker over a store that nothing else writes to.
    pub fn new(store: impl Store + 'static, clock: Clock, entropy: Entropy) -> Self {
        Self { store: Arc::new(store), clock, entropy, etags: Arc::default() }
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
