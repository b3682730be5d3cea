//! State of every agent, for an overview of the fleet.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::events::AgentEvent;
use crate::AgentId;

/// State of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetAgentRecord {
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Name of the agent.
    pub name: String,
    /// Name of the agent's cluster.
    pub cluster_name: String,
    /// `ACTIVE`, `INACTIVE`, or `DELETED`: a deleted agent that has not confirmed all removals.
    pub status: String,
    /// Time of the last heartbeat.
    #[serde(default)]
    pub last_heartbeat: Option<Timestamp>,
    /// Seconds since the last heartbeat.
    #[serde(default)]
    pub heartbeat_age_seconds: Option<i64>,
    /// Time of the last event.
    #[serde(default)]
    pub last_event_at: Option<Timestamp>,
    /// Seconds since the last event.
    #[serde(default)]
    pub seconds_since_last_event: Option<i64>,
    /// Number of revisions in the target state without a reported success.
    pub pending_object_count: i64,
    /// Number of revisions reported as degraded.
    pub health_degraded: i64,
    /// Number of revisions reported as failing.
    pub health_failing: i64,
    /// True if the agent reached its Kubernetes API server, according to its last heartbeat.
    #[serde(default)]
    pub k8s_reachable: Option<bool>,
    /// Response time of the agent's Kubernetes API server, according to its last heartbeat.
    #[serde(default)]
    pub k8s_api_latency_ms: Option<i64>,
    /// Number of pending work orders.
    pub pending_work_orders: i64,
    /// Number of claimed work orders.
    pub claimed_work_orders: i64,
    /// True if the agent has an open connection.
    pub ws_connected: bool,
    /// Time at which the connection was opened.
    #[serde(default)]
    pub connected_since: Option<Timestamp>,
}

/// State of one agent and its recent events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentFleetStatusResponse {
    /// State of the agent.
    pub record: FleetAgentRecord,
    /// Events, newest first.
    pub recent_events: Vec<AgentEvent>,
}
