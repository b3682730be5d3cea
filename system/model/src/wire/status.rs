//! Conditions of a stack on each cluster. A report replaces the previous one, so a lost report does no harm.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{
    ALPHANUMERIC_PATTERN, CONDITION_MESSAGE_CHARS_MAX, CONDITION_REASON_CHARS_MAX, CONDITION_TYPE_CHARS_MAX,
    CONDITIONS_MAX,
};
use crate::{AgentId, RevisionId, Sequence, StackId};

/// Condition types that agents report. The broker stores others too.
pub mod condition {
    /// The bundle is valid.
    pub const ACCEPTED: &str = "Accepted";
    /// All declared objects are applied.
    pub const APPLIED: &str = "Applied";
    /// Reason of `Applied` if another client or a controller replaces applied values.
    pub const REWRITTEN: &str = "Rewritten";
    /// All applied objects are ready.
    pub const READY: &str = "Ready";
    /// Another client changed applied objects.
    pub const DRIFTED: &str = "Drifted";
    /// The plan is held until it is approved.
    pub const BLOCKED: &str = "Blocked";
    /// The stack is being removed.
    pub const DELETING: &str = "Deleting";
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The agent cannot determine it.
    Unknown,
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

/// Condition as an agent reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedCondition {
    /// Type; at most 64 characters, unique within a report.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = CONDITION_TYPE_CHARS_MAX), regex(pattern = ALPHANUMERIC_PATTERN)))]
    pub kind: String,
    /// Status.
    pub status: ConditionStatus,
    /// Machine-readable reason in CamelCase; at most 256 characters.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = CONDITION_REASON_CHARS_MAX)))]
    pub reason: String,
    /// Human-readable message; at most 4,096 characters.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = CONDITION_MESSAGE_CHARS_MAX)))]
    pub message: String,
}

/// Report of an agent about a stack on its cluster. Replaces the previous report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackStatusReport {
    /// Id of the revision or deletion marker that the report is about.
    pub deployment_object_id: RevisionId,
    /// At most 16 conditions.
    #[cfg_attr(feature = "schema", schemars(length(max = CONDITIONS_MAX)))]
    pub conditions: Vec<ReportedCondition>,
}

/// Condition as the broker stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status.
    pub status: ConditionStatus,
    /// Machine-readable reason in CamelCase.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// Time of the last change of `status`. A new reason or message does not change it.
    #[serde(rename = "lastTransitionTime")]
    pub last_transition_time: Timestamp,
}

/// State of a stack over all clusters. If several apply, the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StackState {
    /// The stack is to be removed, and some agent has not confirmed the removal.
    Deleting,
    /// Some agent waits for an approval.
    Blocked,
    /// Some agent cannot apply its target state.
    Failed,
    /// Some agent has not yet applied its target state.
    Progressing,
    /// All agents have applied it, and it is not ready on some cluster.
    Applied,
    /// Ready on every targeted cluster.
    Ready,
}

impl fmt::Display for StackState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deleting => "Deleting",
            Self::Blocked => "Blocked",
            Self::Failed => "Failed",
            Self::Progressing => "Progressing",
            Self::Applied => "Applied",
            Self::Ready => "Ready",
        })
    }
}

/// Last report of one agent about a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStackStatus {
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Name of the agent.
    pub name: String,
    /// Name of the agent's cluster.
    pub cluster_name: String,
    /// Id of the reported revision; absent without a report.
    #[serde(default)]
    pub deployment_object_id: Option<RevisionId>,
    /// Sequence of the revision.
    #[serde(default)]
    pub sequence_id: Option<Sequence>,
    /// Conditions by type; empty without a report.
    pub conditions: Vec<Condition>,
}

/// Status of a stack on every cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackStatus {
    /// Id of the stack.
    pub stack_id: StackId,
    /// Id of the newest revision, if there is one.
    #[serde(default)]
    pub deployment_object_id: Option<RevisionId>,
    /// Sequence of the revision.
    #[serde(default)]
    pub sequence_id: Option<Sequence>,
    /// State over all clusters.
    pub state: StackState,
    /// Agents that are targeted or still have to remove the stack, by name.
    pub agents: Vec<AgentStackStatus>,
}
