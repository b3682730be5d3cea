//! Hosts that take part in a scenario, and their names.

use serde::{Deserialize, Serialize};
use sindri_agent::Limits;
use sindri_model::ServiceAccount;

use super::duration::Span;

/// Agents and brokers of a scenario.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Names of the agents; each has a cluster of its own.
    pub agents: Vec<String>,
    /// Number of processes of each agent: `east`, `east-2` and so on, of which one acts.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replicas: usize,
    /// The only namespace that the agents may access; `None` for the whole cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Namespaces that are closed to stacks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved_namespaces: Vec<String>,
    /// ServiceAccount as which stacks are written that name none; `None` for the agents' own permissions.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "service_account")]
    pub default_service_account: Option<ServiceAccount>,
    /// Number of brokers on one database: `broker`, `broker-2` and so on.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub brokers: usize,
    /// Time by which the clocks of the agents are ahead of all others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub clocks_ahead: Span,
    /// Limits of the agents' work.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// True if the clusters create the pods of workloads and run them on a node, as real ones always do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub runs_pods: bool,
}

impl Fleet {
    /// Creates a fleet of agents with one process each, correct clocks and one broker.
    pub fn from_agents(agents: Vec<String>) -> Self {
        Self {
            agents,
            replicas: one(),
            namespace: None,
            reserved_namespaces: Vec::new(),
            default_service_account: None,
            brokers: one(),
            clocks_ahead: Span::default(),
            limits: Limits::default(),
            runs_pods: false,
        }
    }

    /// Returns true if a host of this name takes part: a broker, a process of an agent, or an API server as
    /// `NAME-api`.
    pub fn has_host(&self, name: &str) -> bool {
        let is_broker = (0..self.brokers).any(|index| broker_name(index) == name);
        let is_agent =
            |agent: &String| (0..self.replicas).any(|index| replica_name(agent, index) == name) || is_api(agent, name);
        is_broker || self.agents.iter().any(is_agent)
    }
}

/// A ServiceAccount as its text.
mod service_account {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use sindri_model::ServiceAccount;

    pub fn serialize<S: Serializer>(account: &Option<ServiceAccount>, serializer: S) -> Result<S::Ok, S::Error> {
        match account {
            Some(account) => serializer.collect_str(account),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ServiceAccount>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == one()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_api(agent: &str, name: &str) -> bool {
    name.strip_suffix("-api") == Some(agent)
}

/// Returns the name of a broker by its index, from 0.
pub fn broker_name(index: usize) -> String {
    if index == 0 { "broker".to_owned() } else { format!("broker-{}", index + 1) }
}

/// Returns the name of a process of an agent by its index, from 0.
pub fn replica_name(agent: &str, index: usize) -> String {
    if index == 0 { agent.to_owned() } else { format!("{agent}-{}", index + 1) }
}
