//! Writes heartbeats from memory to the store.

use std::time::Duration;

use tokio::time::sleep;

use crate::broker::Broker;

/// Maximum time for which a heartbeat is only in memory.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// Largest number of heartbeats that one transaction writes.
const BATCH_MAX: usize = 1_000;

impl Broker {
    pub(super) async fn write_heartbeats(&self) {
        loop {
            sleep(WRITE_INTERVAL).await;
            self.flush_heartbeats().await;
        }
    }

    /// Writes the pending heartbeats; returns true if all are written. Those that cannot be written stay pending.
    pub(crate) async fn flush_heartbeats(&self) -> bool {
        let heartbeats = self.memory.heartbeats.list_pending();
        // In parts, so that a fleet of any size fits the time of a call.
        for part in heartbeats.chunks(BATCH_MAX) {
            if let Err(error) = self.store.record_heartbeats(part.to_vec()).await {
                tracing::warn!(%error, pending = heartbeats.len(), "heartbeats cannot be written, and stay in memory");
                return false;
            }
            self.memory.heartbeats.remove_written(part);
        }
        true
    }
}
