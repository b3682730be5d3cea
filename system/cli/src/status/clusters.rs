//! Names of clusters in an overview.

use std::collections::BTreeMap;

use sindri_model::AgentId;
use sindri_model::wire::AgentOverview;

/// Name of each agent's cluster; with the name of the agent if several agents have the cluster.
pub(crate) struct ClusterNames(BTreeMap<AgentId, String>);

impl ClusterNames {
    pub(crate) fn new(agents: &[AgentOverview]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for agent in agents {
            *counts.entry(&agent.cluster_name).or_default() += 1;
        }
        let name = |agent: &AgentOverview| match counts.get(agent.cluster_name.as_str()) {
            Some(1) => agent.cluster_name.clone(),
            _ => format!("{}/{}", agent.cluster_name, agent.name),
        };
        Self(agents.iter().map(|agent| (agent.id, name(agent))).collect())
    }

    /// Returns the name of an agent's cluster.
    pub(crate) fn get(&self, agent: AgentId) -> String {
        self.0.get(&agent).cloned().unwrap_or_else(|| agent.to_string())
    }
}
