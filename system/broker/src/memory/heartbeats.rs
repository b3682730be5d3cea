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
    /// Adds a heartbeat, which replaces the one before.
    pub(crate) fn insert(&self, agent: AgentId, mut beat: Heartbeat) {
        let mut buffer = self.lock();
        if let Some(before) = buffer.get(&agent) {
            // A heartbeat without a field keeps the last reported value.
            beat.report.k8s_reachable = beat.report.k8s_reachable.or(before.report.k8s_reachable);
            beat.report.k8s_api_latency_ms = beat.report.k8s_api_latency_ms.or(before.report.k8s_api_latency_ms);
        }
        buffer.insert(agent, beat);
    }

    /// Returns the heartbeats to write. They stay in the buffer until [`Self::remove_written`].
    pub(crate) fn pending(&self) -> Vec<(AgentId, Heartbeat)> {
        self.lock().iter().map(|(agent, beat)| (*agent, beat.clone())).collect()
    }

    /// Removes heartbeats that are in the store now, unless a newer one of the same agent has arrived.
    pub(crate) fn remove_written(&self, beats: &[(AgentId, Heartbeat)]) {
        let mut buffer = self.lock();
        for (agent, beat) in beats {
            if buffer.get(agent) == Some(beat) {
                buffer.remove(agent);
            }
        }
    }

    /// Returns a stored agent with the values of its newest heartbeat.
    pub(crate) fn apply_to(&self, mut agent: Agent) -> Agent {
        if let Some(beat) = self.lock().get(&agent.id) {
            agent.last_heartbeat = Some(beat.at);
            if beat.report.k8s_reachable.is_some() || beat.report.k8s_api_latency_ms.is_some() {
                agent.k8s_reachable = beat.report.k8s_reachable;
                agent.k8s_api_latency_ms = beat.report.k8s_api_latency_ms;
                agent.k8s_reported_at = Some(beat.at);
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

    fn beat(second: i64) -> Heartbeat {
        Heartbeat { at: Timestamp::from_second(second).unwrap(), report: Default::default() }
    }

    #[test]
    fn a_heartbeat_stays_until_it_is_written_and_a_newer_one_stays_longer() {
        let (beats, agent) = (HeartbeatBuffer::default(), AgentId::mint(&Entropy::new(|bytes| bytes.fill(1))));
        beats.insert(agent, beat(1));
        let pending = beats.pending();
        assert_eq!(beats.pending(), pending, "pending heartbeats stay in the buffer");
        beats.insert(agent, beat(2));
        beats.remove_written(&pending);
        assert_eq!(beats.pending(), [(agent, beat(2))]);
        beats.remove_written(&[(agent, beat(2))]);
        assert_eq!(beats.pending(), []);
    }
}
