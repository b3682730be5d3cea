//! Follows the changes that other brokers make in a shared store, and invalidates the caches.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::broker::Broker;
use crate::store::StoreChange;

/// Time to wait after an error of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Follows other brokers. The caches are cleared first, because changes before the start are not reported.
    ///
    /// While the store does not respond, nothing confirms that the caches are fresh. Then requests are rejected, so that
    /// clients go to another broker, and the polls that wait are woken.
    pub(super) async fn follow_replicas(&self) {
        if !self.store.is_shared() {
            return;
        }
        self.memory.freshness.confirm(Instant::now());
        let mut latest = loop {
            match self.store.get_position().await {
                Ok(position) => break position.latest,
                Err(_) => sleep(RETRY_AFTER).await,
            }
        };
        self.memory.apply_changes(&[StoreChange::Epoch, StoreChange::Keys]);
        loop {
            // If the store cannot wait for notifications, it is queried at this interval.
            if self.store.await_remote_change().await.is_err() {
                sleep(RETRY_AFTER).await;
            }
            let asked_at = Instant::now();
            match self.store.list_changes_since(latest).await {
                Ok(since) => {
                    // A lower counter means that the database was replaced by a backup.
                    if since.latest < latest {
                        self.memory.apply_changes(&[StoreChange::Epoch, StoreChange::Keys]);
                    }
                    latest = since.latest;
                    self.memory.apply_changes(&since.changes);
                    self.memory.freshness.confirm(asked_at);
                    self.memory.deliveries.notify_one();
                }
                Err(_) => {
                    if self.memory.freshness.is_lost() {
                        self.memory.target_states.wake_all();
                    }
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}
