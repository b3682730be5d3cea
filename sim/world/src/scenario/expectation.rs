//! Expectations: properties of the clusters, of the agents' requests and writes, and of the broker's records.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sindri_model::wire::{ConditionStatus, StackState};

use super::duration::Span;
use crate::journal::AgentWrite;

/// A property that holds at the end of a scenario, or at the step `check`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// An object exists and has these fields.
    Object(ObjectCheck),
    /// An object does not exist.
    Absent(ObjectRef),
    /// The broker has recorded events.
    Events(EventCheck),
    /// A cluster has Kubernetes Events about an object.
    KubernetesEvents(KubernetesEventCheck),
    /// The agent of a cluster made these writes in this order; others may be in between.
    Written(WritesCheck),
    /// The agent of a cluster never made any of these writes.
    Unwritten(WritesCheck),
    /// The broker knows a condition of a stack.
    Condition(ConditionCheck),
    /// The broker summarises a stack as this state.
    State(StateCheck),
    /// The broker has received a heartbeat of an agent lately.
    Heartbeat(HeartbeatCheck),
    /// The agent of a cluster made this number of requests.
    RequestCount(RequestCountCheck),
    /// Matching requests of the agent followed each other after these waits, to the second.
    Retried(RetryCheck),
}

/// An object by its key, such as `apps/Deployment shop/web`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectRef {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: String,
}

/// An object and its fields.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectCheck {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: String,
    /// Fields that it has; it may have others.
    #[serde(default)]
    pub has: Value,
    /// JSON pointers of fields that it does not have.
    #[serde(default)]
    pub lacks: Vec<String>,
}

/// Events of a stack.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EventCheck {
    /// The stack.
    pub stack: String,
    /// Agent that reported them; any agent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `SUCCESS` or `FAILURE`.
    pub status: String,
    /// True for events about a removal, false for events about a revision; both if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<bool>,
    /// Texts that the message of one event contains, all of them.
    #[serde(default)]
    pub message_has: Vec<String>,
    /// Number of such events.
    pub count: Count,
}

/// A number, or a lower bound.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Count {
    /// Exactly this number.
    Exactly(usize),
    /// This number or more.
    AtLeast {
        /// The lower bound.
        at_least: usize,
    },
}

impl Count {
    /// Returns true if this number is expected.
    pub(crate) fn includes(&self, number: usize) -> bool {
        match *self {
            Self::Exactly(expected) => number == expected,
            Self::AtLeast { at_least } => number >= at_least,
        }
    }
}

/// Writes of the agent of a cluster, each as `create ConfigMap shop/a`, `change …` or `delete …`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WritesCheck {
    /// The cluster.
    pub cluster: String,
    /// The writes.
    pub writes: Vec<AgentWrite>,
}

/// Kubernetes Events about an object.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesEventCheck {
    /// The cluster.
    pub cluster: String,
    /// The object, such as `Service shop/web`.
    pub about: String,
    /// Reason of the Events.
    pub reason: String,
    /// Texts that their messages contain, all of them.
    #[serde(default)]
    pub message_has: Vec<String>,
    /// Number of such Events.
    pub count: Count,
}

/// A condition of a stack at an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionCheck {
    /// The stack.
    pub stack: String,
    /// The agent.
    pub agent: String,
    /// The condition.
    pub has: ExpectedCondition,
}

/// A condition that an agent reports about a stack.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCondition {
    /// Type of the condition, such as `Applied`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// Its reason; any if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Texts that its message contains, all of them.
    #[serde(default)]
    pub message_has: Vec<String>,
}

/// State of a stack over all agents.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StateCheck {
    /// The stack.
    pub stack: String,
    /// The state.
    pub is: StackState,
}

/// Age of the last heartbeat of an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatCheck {
    /// The agent.
    pub agent: String,
    /// Greatest age.
    pub within: Span,
}

/// Number of requests of the agent of a cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RequestCountCheck {
    /// The cluster.
    pub cluster: String,
    /// Words of the request, as in `fail`.
    pub requests: String,
    /// Upper bound.
    pub at_most: usize,
    /// Lower bound.
    #[serde(default)]
    pub at_least: usize,
}

/// Waits between repeated requests.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RetryCheck {
    /// The cluster.
    pub cluster: String,
    /// Words of the request, as in `fail`.
    pub requests: String,
    /// Waits between the first ones.
    pub waits: Vec<Span>,
}
