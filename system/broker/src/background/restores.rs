//! Begins a new epoch when the database is replaced while the broker runs.

use std::time::Duration;

use tokio::time::sleep;

use crate::broker::Broker;
use crate::store::StoreChange;

/// Time to wait after an error of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    pub(super) async fn handle_restores(&self) {
        loop {
            let Ok(evidence) = self.store.await_restore().await else {
                sleep(RETRY_AFTER).await;
                continue;
            };
            match self.detect_replacement(evidence.clone()).await {
                Ok(()) => {
                    // Another broker may have begun the epoch, and the caches hold what the lost commits had changed.
                    self.memory.apply_changes(&[StoreChange::Epoch, StoreChange::Keys]);
                    self.store.confirm_restore(&evidence);
                }
                Err(error) => {
                    tracing::warn!(%error, "the database was replaced, and a new epoch cannot begin yet");
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}
