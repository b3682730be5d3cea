//! What a broker does without being asked: writes heartbeats, hears what other brokers did, sends messages.

use std::time::Duration;

use tokio::time::sleep;

use crate::Broker;
use crate::store::Change;

/// How long a heartbeat may wait before it is written.
const HEARTBEATS_EVERY: Duration = Duration::from_secs(5);
/// After a store that did not answer.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Never ends; its owner drops it.
    pub(crate) async fn background(&self) {
        tokio::join!(self.write_heartbeats(), self.follow(), self.deliver_webhooks());
    }

    async fn write_heartbeats(&self) {
        loop {
            sleep(HEARTBEATS_EVERY).await;
            self.flush_heartbeats().await;
        }
    }

    /// Writes what waits; what cannot be written waits on.
    pub(crate) async fn flush_heartbeats(&self) {
        let beats = self.memory.heartbeats.unwritten();
        if !beats.is_empty() && self.store.record_heartbeats(beats.clone()).await.is_ok() {
            self.memory.heartbeats.written(&beats);
        }
    }

    /// Forgets what other brokers have changed. Everything is forgotten first: whatever was changed before we looked.
    async fn follow(&self) {
        if !self.store.is_shared() {
            return;
        }
        let mut latest = loop {
            match self.store.era().await {
                Ok(era) => break era.latest,
                Err(_) => sleep(AGAIN_AFTER).await,
            }
        };
        self.memory.answers.forget_all();
        self.memory.keys.forget();
        loop {
            // A store that cannot even listen is asked at a pace that does it no harm.
            if self.store.heard().await.is_err() {
                sleep(AGAIN_AFTER).await;
            }
            match self.store.news(latest).await {
                Ok(news) => {
                    // A counter that went back is another database: a backup was put in its place.
                    if news.latest < latest {
                        self.memory.note(&[Change::Epoch, Change::Keys]);
                    }
                    latest = news.latest;
                    self.memory.note(&news.changes);
                    self.memory.deliveries.notify_one();
                }
                Err(_) => sleep(AGAIN_AFTER).await,
            }
        }
    }
}
