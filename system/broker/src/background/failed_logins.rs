//! Writes failed logins from memory to the audit log.

use std::time::Duration;

use tokio::time::sleep;

use crate::broker::Broker;

/// Minimum time between two transactions.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

impl Broker {
    pub(super) async fn record_failed_logins(&self) {
        loop {
            self.memory.failed_logins.added().await;
            while !self.flush_failed_logins().await {
                sleep(WRITE_INTERVAL).await;
            }
            sleep(WRITE_INTERVAL).await;
        }
    }

    /// Writes the pending failed logins; returns true if all are written. Those that cannot be written stay pending.
    pub(crate) async fn flush_failed_logins(&self) -> bool {
        let logins = self.memory.failed_logins.list_pending();
        if logins.is_empty() {
            return true;
        }
        let count = logins.len();
        match self.store.record_failed_logins(self.write_context(), logins).await {
            Ok(()) => self.memory.failed_logins.remove_written(count),
            Err(error) => {
                tracing::warn!(%error, pending = count, "failed logins cannot be written, and stay in memory");
                return false;
            }
        }
        true
    }
}
