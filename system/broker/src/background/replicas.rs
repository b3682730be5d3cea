//! Follows the changes that other brokers make in a shared store, and invalidates the caches.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::broker::Broker;
use crate::store::StoreChange;

/// Time without a response of the store after which this broker may have missed changes for too long. It does not respond from
/// its cache any more, so that agents go to another broker.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Time to wait after an error of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Follows other brokers. The caches are cleared first, because changes before the start are not reported.
    pub(super) async fn follow_replicas(&self) {
        if !self.store.is_shared() {
            return;
        }
        let mut latest = loop {
            match self.store.get_position().await {
                Ok(position) => break position.latest,
                Err(_) => sleep(RETRY_AFTER).await,
            }
        };
        self.memory.target_states.invalidate_all();
        self.memory.keys.invalidate();
        let mut responded_at = Instant::now();
        loop {
            // If the store cannot wait for notifications, it is queried at this interval.
            if self.store.await_remote_change().await.is_err() {
                sleep(RETRY_AFTER).await;
            }
            match self.store.list_changes_since(latest).await {
                Ok(since) => {
                    // A lower counter means that the database was replaced by a backup.
                    if since.latest < latest {
                        self.memory.apply_changes(&[StoreChange::Epoch, StoreChange::Keys]);
                    }
                    (latest, responded_at) = (since.latest, Instant::now());
                    self.memory.apply_changes(&since.changes);
                    self.memory.deliveries.notify_one();
                }
                Err(_) => {
                    if responded_at.elapsed() >= SILENCE_MAX {
                        self.memory.target_states.invalidate_all();
                    }
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}
