//! How a stack is on each cluster: conditions, which are levels. Whoever reads the last report of each knows all there
//! is to know; what was missed in between does not matter.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{AgentId, RevisionId, Sequence, StackId};

/// The types of conditions that agents report. A broker keeps others too.
pub mod condition {
    /// The bundle is one that can be carried out.
    pub const ACCEPTED: &str = "Accepted";
    /// Everything that is declared was written.
    pub const APPLIED: &str = "Applied";
    /// The reason of `Applied` when something in the cluster keeps other values than were applied.
    pub const REWRITTEN: &str = "Rewritten";
    /// What was written works. Not the same as applied.
    pub const READY: &str = "Ready";
    /// Somebody else changed what was written.
    pub const DRIFTED: &str = "Drifted";
    /// It is held back until somebody approves.
    pub const BLOCKED: &str = "Blocked";
    /// It is being removed.
    pub const DELETING: &str = "Deleting";
}

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// The agent cannot tell.
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

/// A condition as an agent reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportedCondition {
    /// What it is about; at most 64 characters, and once in a report.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word for programs; at most 256 characters.
    #[serde(default)]
    pub reason: String,
    /// Why, for people; at most 4,096 characters.
    #[serde(default)]
    pub message: String,
}

/// How a stack is on the cluster of the agent that says so. Replaces what it said before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StackStatusReport {
    /// The revision that it is about, or the removal.
    pub deployment_object_id: RevisionId,
    /// At most 16.
    pub conditions: Vec<ReportedCondition>,
}

/// A condition as the broker knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Since when it has this status. Another reason or message does not move it.
    #[serde(rename = "lastTransitionTime")]
    pub last_transition_time: Timestamp,
}

/// How a stack is, everywhere together. Of several the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StackState {
    /// It is to be removed, and some agent has not confirmed that it did.
    Deleting,
    /// Some agent waits for an approval.
    Blocked,
    /// Some agent cannot carry out what is wanted of it.
    Failed,
    /// Some agent has not applied what is wanted of it.
    Progressing,
    /// All have, and on some cluster it is not ready.
    Applied,
    /// It is ready wherever it is wanted.
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

/// How a stack is on one cluster, as its agent last said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStackStatus {
    /// The agent.
    pub agent_id: AgentId,
    /// Its name.
    pub name: String,
    /// Its cluster.
    pub cluster_name: String,
    /// The revision that it speaks of, if it has said anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_object_id: Option<RevisionId>,
    /// Its sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_id: Option<Sequence>,
    /// By type; none if it has said nothing.
    pub conditions: Vec<Condition>,
}

/// How a stack is on every cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackStatus {
    /// The stack.
    pub stack_id: StackId,
    /// Its newest revision, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_object_id: Option<RevisionId>,
    /// Its sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_id: Option<Sequence>,
    /// How it is, everywhere together.
    pub state: StackState,
    /// Those that it is wanted of, and those that still have to remove it, by name.
    pub agents: Vec<AgentStackStatus>,
}
