//! How every agent is doing, on one page.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::AgentEvent;
use crate::AgentId;

/// How one agent is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetAgentRecord {
    /// The agent.
    pub agent_id: AgentId,
    /// Its name.
    pub name: String,
    /// Its cluster.
    pub cluster_name: String,
    /// `ACTIVE`, `INACTIVE`, or `DELETED`: an agent that is gone and still owes the removal of something.
    pub status: String,
    /// When it last sent a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<Timestamp>,
    /// How long ago that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_age_seconds: Option<i64>,
    /// When it last reported something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_at: Option<Timestamp>,
    /// How long ago that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_since_last_event: Option<i64>,
    /// What is wanted of it and not confirmed as done.
    pub pending_object_count: i64,
    /// Revisions that it calls degraded.
    pub health_degraded: i64,
    /// Revisions that it calls failing.
    pub health_failing: i64,
    /// Whether it reached its API server, as it last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_reachable: Option<bool>,
    /// How long its API server took to answer, as it last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_api_latency_ms: Option<i64>,
    /// Work orders that wait for it.
    pub pending_work_orders: i64,
    /// Work orders that it has taken.
    pub claimed_work_orders: i64,
    /// Whether it holds a connection open.
    pub ws_connected: bool,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_since: Option<Timestamp>,
}

/// How one agent is doing, and what it reported last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentFleetStatusResponse {
    /// How it is doing.
    pub record: FleetAgentRecord,
    /// Newest first.
    pub recent_events: Vec<AgentEvent>,
}
