//! Heartbeats that are not in the store yet. They are written in batches: a stalled store delays no agent, and a
//! thousand agents need one transaction.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::AgentId;
use sindri_model::wire::Agent;

use crate::store::Heartbeat;

/// Newest heartbeat of each agent that is not in the store yet.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatBuffer(Mutex<BTreeMap<AgentId, Heartbeat>>);

impl HeartbeatBuffer {
    /// Adds a heartbeat, which replaces the previous one.
    pub(crate) fn insert(&self, agent: AgentId, mut heartbeat: Heartbeat) {
        let mut buffer = self.lock();
        if let Some(previous) = buffer.get(&agent) {
            // A heartbeat without a field keeps the last reported value.
            heartbeat.report.k8s_reachable = heartbeat.report.k8s_reachable.or(previous.report.k8s_reachable);
            heartbeat.report.k8s_api_latency_ms =
                heartbeat.report.k8s_api_latency_ms.or(previous.report.k8s_api_latency_ms);
        }
        buffer.insert(agent, heartbeat);
    }

    /// Returns the heartbeats to write. They stay in the buffer until [`Self::remove_written`].
    pub(crate) fn list_pending(&self) -> Vec<(AgentId, Heartbeat)> {
        self.lock().iter().map(|(agent, heartbeat)| (*agent, heartbeat.clone())).collect()
    }

    /// Removes heartbeats that are in the store now, unless a newer one of the same agent has arrived.
    pub(crate) fn remove_written(&self, heartbeats: &[(AgentId, Heartbeat)]) {
        let mut buffer = self.lock();
        for (agent, heartbeat) in heartbeats {
            if buffer.get(agent) == Some(heartbeat) {
                buffer.remove(agent);
            }
        }
    }

    /// Returns a stored agent with the values of its newest heartbeat; another broker may have stored a newer one.
    pub(crate) fn apply_to(&self, mut agent: Agent) -> Agent {
        let is_newer =
            |heartbeat: &&Heartbeat| agent.last_heartbeat.is_none_or(|stored| heartbeat.received_at > stored);
        if let Some(heartbeat) = self.lock().get(&agent.id).filter(is_newer) {
            agent.last_heartbeat = Some(heartbeat.received_at);
            if heartbeat.report.k8s_reachable.is_some() || heartbeat.report.k8s_api_latency_ms.is_some() {
                agent.k8s_reachable = heartbeat.report.k8s_reachable;
                agent.k8s_api_latency_ms = heartbeat.report.k8s_api_latency_ms;
                agent.k8s_reported_at = Some(heartbeat.received_at);
            }
        }
        agent
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, Heartbeat>> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use sindri_model::Entropy;

    fn heartbeat(second: i64) -> Heartbeat {
        Heartbeat { received_at: Timestamp::from_second(second).unwrap(), report: Default::default() }
    }

    #[test]
    fn a_heartbeat_stays_until_it_is_written_and_a_newer_one_stays_longer() {
        let (buffer, agent) = (HeartbeatBuffer::default(), AgentId::generate(&Entropy::new(|bytes| bytes.fill(1))));
        buffer.insert(agent, heartbeat(1));
        let pending = buffer.list_pending();
        assert_eq!(buffer.list_pending(), pending, "pending heartbeats stay in the buffer");
        buffer.insert(agent, heartbeat(2));
        buffer.remove_written(&pending);
        assert_eq!(buffer.list_pending(), [(agent, heartbeat(2))]);
        buffer.remove_written(&[(agent, heartbeat(2))]);
        assert_eq!(buffer.list_pending(), []);
    }
}
