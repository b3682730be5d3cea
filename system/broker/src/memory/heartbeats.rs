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

    /// What is to be written now.
    pub(crate) fn take(&self) -> Vec<(AgentId, Heartbeat)> {
        std::mem::take(&mut *self.lock()).into_iter().collect()
    }

    /// What could not be written, unless something newer has come.
    pub(crate) fn put_back(&self, beats: Vec<(AgentId, Heartbeat)>) {
        let mut waiting = self.lock();
        for (agent, beat) in beats {
            waiting.entry(agent).or_insert(beat);
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
