//! Heartbeats that are not in the store yet. They are written together now and then: a store that stalls delays no
//! agent, and a thousand agents cost one transaction.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::AgentId;
use sindri_model::wire::Agent;

use crate::store::Heartbeat;

/// The newest heartbeat of each agent.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats(Mutex<BTreeMap<AgentId, Heartbeat>>);

impl Heartbeats {
    pub(crate) fn received(&self, agent: AgentId, mut beat: Heartbeat) {
        let mut waiting = self.lock();
        if let Some(before) = waiting.get(&agent) {
            // A heartbeat that says nothing about the cluster leaves what was last said.
            beat.report.k8s_reachable = beat.report.k8s_reachable.or(before.report.k8s_reachable);
            beat.report.k8s_api_latency_ms = beat.report.k8s_api_latency_ms.or(before.report.k8s_api_latency_ms);
        }
        waiting.insert(agent, beat);
    }

    /// What is to be written. It stays here until it is.
    pub(crate) fn unwritten(&self) -> Vec<(AgentId, Heartbeat)> {
        self.lock().iter().map(|(agent, beat)| (*agent, beat.clone())).collect()
    }

    /// These are in the store now; what has come since is not.
    pub(crate) fn written(&self, beats: &[(AgentId, Heartbeat)]) {
        let mut waiting = self.lock();
        for (agent, beat) in beats {
            if waiting.get(agent) == Some(beat) {
                waiting.remove(agent);
            }
        }
    }

    /// An agent as it is known here.
    pub(crate) fn applied_to(&self, mut agent: Agent) -> Agent {
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
        // Nothing here can be left half done.
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
    fn a_heartbeat_stays_until_it_is_written_and_a_newer_one_stays_after_that() {
        let (beats, agent) = (Heartbeats::default(), AgentId::mint(&Entropy::new(|bytes| bytes.fill(1))));
        beats.received(agent, beat(1));
        let under_way = beats.unwritten();
        assert_eq!(beats.unwritten(), under_way, "a store that stalls hides nothing");
        beats.received(agent, beat(2));
        beats.written(&under_way);
        assert_eq!(beats.unwritten(), [(agent, beat(2))]);
        beats.written(&[(agent, beat(2))]);
        assert_eq!(beats.unwritten(), []);
    }
}
