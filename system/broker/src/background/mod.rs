//! What a broker does without being asked: writes heartbeats, notes who sends none, hears what other brokers did, sends
//! messages.

mod webhook_delivery;

use std::time::Duration;

use tokio::time::sleep;

use crate::broker::Broker;
use crate::store::StoreChange;

/// How long a heartbeat may wait before it is written.
const HEARTBEATS_EVERY: Duration = Duration::from_secs(5);
/// How often to look for agents that have fallen silent.
const SILENCE_EVERY: Duration = Duration::from_secs(15);
/// How many of them one transaction notes.
const SILENT_MAX: i64 = 256;
/// After a store that did not answer.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Broker {
    /// Never ends; its owner drops it.
    pub(crate) async fn background(&self) {
        tokio::join!(self.write_heartbeats(), self.watch_for_silence(), self.follow(), self.deliver_webhooks());
    }

    async fn write_heartbeats(&self) {
        loop {
            sleep(HEARTBEATS_EVERY).await;
            self.flush_heartbeats().await;
        }
    }

    /// Writes what waits; what cannot be written waits on. Says whether all that was there is written.
    pub(crate) async fn flush_heartbeats(&self) -> bool {
        let beats = self.memory.heartbeats.unwritten();
        let is_written = beats.is_empty() || self.store.record_heartbeats(beats.clone()).await.is_ok();
        if is_written {
            self.memory.heartbeats.written(&beats);
        }
        is_written
    }

    async fn watch_for_silence(&self) {
        let Some(after) = self.offline_after else { return };
        // Nobody could be heard while this broker was away: everyone gets the whole time first.
        sleep(after).await;
        loop {
            self.note_silence(after).await;
            sleep(SILENCE_EVERY).await;
        }
    }

    /// Notes who was silent for longer than this. Not while heartbeats cannot be written: nobody is offline for that.
    async fn note_silence(&self, after: Duration) {
        if !self.flush_heartbeats().await {
            return;
        }
        let now = self.clock.now();
        let Ok(silent_since) = now.checked_sub(after) else { return };
        while let Ok(noted) = self.store.mark_agents_offline(self.stamp(), silent_since, SILENT_MAX).await
            && i64::try_from(noted).is_ok_and(|noted| noted >= SILENT_MAX)
        {}
    }

    /// Forgets what other brokers have changed. Everything is forgotten first: whatever was changed before we looked.
    async fn follow(&self) {
        if !self.store.is_shared() {
            return;
        }
        let mut latest = loop {
            match self.store.get_position().await {
                Ok(era) => break era.latest,
                Err(_) => sleep(AGAIN_AFTER).await,
            }
        };
        self.memory.answers.forget_all();
        self.memory.keys.forget();
        loop {
            // A store that cannot even listen is asked at a pace that does it no harm.
            if self.store.await_remote_change().await.is_err() {
                sleep(AGAIN_AFTER).await;
            }
            match self.store.list_changes_since(latest).await {
                Ok(news) => {
                    // A counter that went back is another database: a backup was put in its place.
                    if news.latest < latest {
                        self.memory.note(&[StoreChange::Epoch, StoreChange::Keys]);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use jiff::Timestamp;
    use sindri_model::wire::{Agent, AgentStatus, UpdateAgentRequest};
    use sindri_model::{AgentId, Clock, Entropy, Pak};

    use super::*;
    use crate::store::{AuditFilter, Heartbeat, KeyRecord, SqliteStore};

    const AFTER: Duration = Duration::from_secs(120);

    fn entropy() -> Entropy {
        let calls = Arc::new(AtomicI64::new(0));
        Entropy::new(move |bytes| {
            let number = calls.fetch_add(1, Ordering::SeqCst).to_be_bytes();
            bytes.iter_mut().rev().zip(number.iter().rev()).for_each(|(byte, digit)| *byte = *digit);
        })
    }

    /// A broker at a second that can be moved, with an agent that acts.
    async fn broker() -> (Broker, Arc<AtomicI64>, AgentId) {
        let second = Arc::new(AtomicI64::new(1_700_000_000));
        let now = second.clone();
        let clock = Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap());
        let broker = Broker::start(SqliteStore::open(":memory:", None).unwrap(), clock, entropy()).await.unwrap();
        let at = broker.clock.now();
        let agent = Agent {
            id: AgentId::mint(&broker.entropy),
            created_at: at,
            updated_at: at,
            deleted_at: None,
            name: "east".to_owned(),
            cluster_name: "c".to_owned(),
            status: AgentStatus::Active,
            last_heartbeat: None,
            k8s_reachable: None,
            k8s_api_latency_ms: None,
            k8s_reported_at: None,
        };
        let (id, key) = (agent.id, KeyRecord::from(&Pak::mint(&broker.entropy)));
        broker.store.create_agent(broker.stamp(), agent, key, Vec::new()).await.unwrap();
        let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..Default::default() };
        broker.store.update_agent(broker.stamp(), id, active).await.unwrap();
        (broker, second, id)
    }

    /// Looks once, so many seconds later; says how often the agent was ever called offline.
    async fn looked_after(broker: &Broker, second: &AtomicI64, seconds: i64) -> i64 {
        second.fetch_add(seconds, Ordering::SeqCst);
        broker.note_silence(AFTER).await;
        let filter = AuditFilter { action: Some("agent.offline".to_owned()), ..AuditFilter::default() };
        broker.store.list_audit_log(filter).await.unwrap().1
    }

    #[tokio::test]
    async fn an_agent_that_falls_silent_is_noted_once_and_again_after_it_was_back() {
        let (broker, second, agent) = broker().await;
        let beat = || {
            let beat = Heartbeat { at: broker.clock.now(), report: Default::default() };
            broker.memory.heartbeats.received(agent, beat);
        };
        assert_eq!(looked_after(&broker, &second, 1_000).await, 0, "it has never been there");
        beat();
        assert_eq!(looked_after(&broker, &second, 120).await, 0);
        assert_eq!(looked_after(&broker, &second, 1).await, 1);
        assert_eq!(looked_after(&broker, &second, 1_000).await, 1);
        beat();
        assert_eq!(looked_after(&broker, &second, 60).await, 1);
        beat();
        // Not in the store yet: what a broker has heard counts.
        assert_eq!(looked_after(&broker, &second, 100).await, 1);
        assert_eq!(looked_after(&broker, &second, 21).await, 2);
    }
}
