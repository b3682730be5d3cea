//! Agents, their keys and their heartbeats.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{NAME_CHARS_MAX, NO_CONTROL_PATTERN};
use crate::{AgentId, GeneratorId};

/// Status of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum AgentStatus {
    /// Polls its target state and applies it.
    Active,
    /// Sends heartbeats and changes nothing. Initial status of each new agent.
    Inactive,
}

impl AgentStatus {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Inactive => "INACTIVE",
        }
    }

    /// Returns the status with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Inactive].into_iter().find(|status| status.as_str() == name)
    }
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// Id of the agent.
    pub id: AgentId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time of deletion; null if not deleted.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Name, unique within the cluster.
    pub name: String,
    /// Name of the agent's cluster.
    pub cluster_name: String,
    /// Status of the agent.
    pub status: AgentStatus,
    /// Time of the last heartbeat.
    #[serde(default)]
    pub last_heartbeat: Option<Timestamp>,
    /// True if the agent reached its Kubernetes API server, according to its last heartbeat.
    #[serde(default)]
    pub k8s_reachable: Option<bool>,
    /// Response time of the agent's Kubernetes API server, according to its last heartbeat.
    #[serde(default)]
    pub k8s_api_latency_ms: Option<i64>,
    /// Time of the last report about the Kubernetes API server.
    #[serde(default)]
    pub k8s_reported_at: Option<Timestamp>,
}

/// Request to create an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateAgentRequest {
    /// Name, unique within the cluster.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: String,
    /// Name of the agent's cluster.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub cluster_name: String,
    /// Generators with which the agent is registered on creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_ids: Option<Vec<GeneratorId>>,
    /// Time from which the key is invalid; without it the key does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<Timestamp>,
}

/// A new agent and its key. The key is not returned again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateAgentResponse {
    /// The agent.
    pub agent: Agent,
    /// Key of the agent.
    pub initial_pak: String,
}

/// An agent and its new key. The key is not returned again, and the previous key is invalid.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RotateAgentPakResponse {
    /// The agent.
    pub agent: Agent,
    /// New key of the agent.
    pub pak: String,
}

/// Request to change an agent. Absent fields stay unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateAgentRequest {
    /// New name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: Option<String>,
    /// New cluster name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub cluster_name: Option<String>,
    /// New status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AgentStatus>,
}

/// Heartbeat of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatReport {
    /// True if the agent reached its Kubernetes API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_reachable: Option<bool>,
    /// Response time of the Kubernetes API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_api_latency_ms: Option<i64>,
}

/// Announcement of the leader among the processes of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeaderAnnouncement {
    /// Name of the process, as in the header of its reports.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub process: String,
}
