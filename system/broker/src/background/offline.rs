//! Detects agents that send no heartbeats, so that subscribers are notified.

use std::time::Duration;

use tokio::time::sleep;

use crate::broker::Broker;

/// Time between two checks.
const CHECK_EVERY: Duration = Duration::from_secs(15);
/// Limit on the agents that one transaction records as offline.
const BATCH_MAX: i64 = 256;

impl Broker {
    pub(super) async fn detect_offline(&self) {
        let Some(after) = self.offline_after else { return };
        loop {
            while self.store.get_position().await.is_err() {
                sleep(CHECK_EVERY).await;
            }
            // No heartbeat could arrive while this broker was down, and none was stored while the store did not respond; other
            // brokers may have some in memory. So every agent gets the whole time first.
            sleep(after).await;
            while self.record_offline(after).await {
                sleep(CHECK_EVERY).await;
            }
        }
    }

    /// Records the agents without a heartbeat for longer than this; returns false if the store does not respond. Skipped while
    /// heartbeats cannot be written, because the store then has old ones.
    async fn record_offline(&self, after: Duration) -> bool {
        if !self.flush_heartbeats().await {
            return false;
        }
        let now = self.clock.now();
        let Ok(silent_since) = now.checked_sub(after) else { return true };
        loop {
            match self.store.mark_agents_offline(self.write_context(), silent_since, BATCH_MAX).await {
                Ok(recorded) if i64::try_from(recorded).is_ok_and(|recorded| recorded >= BATCH_MAX) => {}
                Ok(_) => return true,
                Err(error) => {
                    tracing::warn!(%error, "offline agents cannot be recorded");
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

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

    /// Returns a broker whose clock can be moved, with an active agent.
    async fn broker(store: SqliteStore) -> (Broker, Arc<AtomicI64>, AgentId) {
        let second = Arc::new(AtomicI64::new(1_700_000_000));
        let now = second.clone();
        let clock = Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap());
        let broker = Broker::start(store, clock, entropy()).await.unwrap();
        let at = broker.clock.now();
        let agent = Agent {
            id: AgentId::generate(&broker.entropy),
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
        let (id, key) = (agent.id, KeyRecord::from(&Pak::generate(&broker.entropy)));
        broker.store.create_agent(broker.write_context(), agent, key, Vec::new()).await.unwrap();
        let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..Default::default() };
        broker.store.update_agent(broker.write_context(), id, active).await.unwrap();
        (broker, second, id)
    }

    /// Checks once after so many seconds; returns the number of times that the agent was recorded as offline.
    async fn offline_count_after(broker: &Broker, second: &AtomicI64, seconds: i64) -> i64 {
        second.fetch_add(seconds, Ordering::SeqCst);
        broker.record_offline(AFTER).await;
        let filter = AuditFilter { action: Some("agent.offline".to_owned()), ..AuditFilter::default() };
        broker.store.list_audit_log(filter).await.unwrap().1
    }

    #[tokio::test]
    async fn an_offline_agent_is_recorded_once_and_again_after_it_was_back() {
        let (broker, second, agent) = broker(SqliteStore::open(":memory:", None).unwrap()).await;
        let beat = || {
            let beat = Heartbeat { received_at: broker.clock.now(), report: Default::default() };
            broker.memory.heartbeats.insert(agent, beat);
        };
        assert_eq!(offline_count_after(&broker, &second, 1_000).await, 0, "it has never sent a heartbeat");
        beat();
        assert_eq!(offline_count_after(&broker, &second, 120).await, 0);
        assert_eq!(offline_count_after(&broker, &second, 1).await, 1);
        assert_eq!(offline_count_after(&broker, &second, 1_000).await, 1);
        beat();
        assert_eq!(offline_count_after(&broker, &second, 60).await, 1);
        beat();
        // This heartbeat is only in memory, and counts.
        assert_eq!(offline_count_after(&broker, &second, 100).await, 1);
        assert_eq!(offline_count_after(&broker, &second, 21).await, 2);
    }

    /// Waits for the time limit of a call.
    #[tokio::test]
    async fn no_agent_is_offline_while_heartbeats_cannot_be_written() {
        let is_next_stalled = Arc::new(AtomicBool::new(false));
        let gate = is_next_stalled.clone();
        let store = SqliteStore::open(":memory:", None).unwrap().gated(Arc::new(move || {
            let is_stalled = gate.swap(false, Ordering::SeqCst);
            Box::pin(async move {
                if is_stalled {
                    std::future::pending::<()>().await;
                }
            })
        }));
        let (broker, second, agent) = broker(store).await;
        let beat = || {
            let beat = Heartbeat { received_at: broker.clock.now(), report: Default::default() };
            broker.memory.heartbeats.insert(agent, beat);
        };
        beat();
        assert_eq!(offline_count_after(&broker, &second, 0).await, 0);
        second.fetch_add(1_000, Ordering::SeqCst);
        beat();
        is_next_stalled.store(true, Ordering::SeqCst);
        assert_eq!(offline_count_after(&broker, &second, 0).await, 0, "the store has only the old heartbeat");
        assert!(!is_next_stalled.load(Ordering::SeqCst));
        assert_eq!(offline_count_after(&broker, &second, 0).await, 0, "the new one is written");
    }
}
