//! Runs all background loops.

use futures_util::future::BoxFuture;

use crate::broker::Broker;

impl Broker {
    /// Runs the background loops until its owner drops it. Boxed, so that they are compiled with this crate, and not with each
    /// user of the generic server.
    pub(crate) fn run_background(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            tokio::join!(
                self.write_heartbeats(),
                self.record_failed_logins(),
                self.detect_offline(),
                self.follow_replicas(),
                self.handle_restores(),
                self.deliver_webhooks(),
                self.delete_old_records(),
                self.encrypt_old_bundles(),
                self.fetch_oidc_keys()
            );
        })
    }

    /// Writes what the background loops would write next. Boxed for the same reason.
    pub(crate) fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.flush_heartbeats().await;
            self.flush_failed_logins().await;
        })
    }
}
