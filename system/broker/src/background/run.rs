//! Runs all background loops.

use crate::broker::Broker;

impl Broker {
    /// Runs the background loops until its owner drops it.
    pub(crate) async fn run_background(&self) {
        tokio::join!(
            self.write_heartbeats(),
            self.record_failed_logins(),
            self.detect_offline(),
            self.follow_replicas(),
            self.handle_restores(),
            self.deliver_webhooks(),
            self.delete_old_records(),
            self.encrypt_old_bundles()
        );
    }
}
