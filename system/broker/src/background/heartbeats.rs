//! Writes heartbeats from memory to the store.

use std::time::Duration;

use tokio::time::sleep;

use crate::broker::Broker;

/// Maximum time for which a heartbeat is only in memory.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

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
        let is_written = heartbeats.is_empty() || self.store.record_heartbeats(heartbeats.clone()).await.is_ok();
        if is_written {
            self.memory.heartbeats.remove_written(&heartbeats);
        }
        is_written
    }
}
