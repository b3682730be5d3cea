//! Overview of stacks on clusters: one state for each assignment of a stack to an agent. Names are in tables of their own, so
//! that thousands of assignments stay small.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::agents::AgentStatus;
use crate::{AgentId, Checksum, GeneratorId, RevisionId, Sequence, StackId};

/// State of a stack on the cluster of one agent that should have it or must remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AssignmentState {
    /// The newest revision cannot be applied, an object of it has failed, or the removal has failed.
    Failed,
    /// The plan waits for an approval.
    Blocked,
    /// No heartbeat of the agent arrives, so that the state is not known.
    Offline,
    /// The agent is inactive and changes nothing.
    Inactive,
    /// The newest revision is applied and ready, or on its way, and another client has changed objects.
    Drifted,
    /// A policy of the stack says that nothing is written on this cluster.
    Suspended,
    /// The agent has not confirmed yet that it has removed the stack.
    Removing,
    /// The agent works on the newest revision, or its objects are not ready yet.
    Progressing,
    /// The agent has not reported on the newest revision, or there is none.
    Pending,
    /// The newest revision is applied and ready.
    Ready,
    /// The agent has removed the stack as its deletion marker says.
    Removed,
}

impl AssignmentState {
    /// All states, the ones that need attention first.
    pub const ALL: [Self; 11] = [
        Self::Failed,
        Self::Blocked,
        Self::Offline,
        Self::Inactive,
        Self::Drifted,
        Self::Suspended,
        Self::Removing,
        Self::Progressing,
        Self::Pending,
        Self::Ready,
        Self::Removed,
    ];

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Blocked => "Blocked",
            Self::Offline => "Offline",
            Self::Inactive => "Inactive",
            Self::Drifted => "Drifted",
            Self::Suspended => "Suspended",
            Self::Removing => "Removing",
            Self::Progressing => "Progressing",
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Removed => "Removed",
        }
    }

    /// Returns true if the state does not change to a good one unless a person does something.
    pub fn is_wrong(self) -> bool {
        match self {
            Self::Failed | Self::Blocked | Self::Offline | Self::Inactive | Self::Drifted => true,
            Self::Suspended | Self::Removing | Self::Progressing | Self::Pending | Self::Ready | Self::Removed => false,
        }
    }

    /// Returns true if nothing remains to be done.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Ready | Self::Removed)
    }
}

impl fmt::Display for AssignmentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// State of a stack on the cluster of one agent, with its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssignmentStatus {
    /// Id of the agent.
    pub agent_id: AgentId,
    /// State.
    pub state: AssignmentState,
    /// True if the agent has to remove the stack: it was deleted, or is no longer assigned to the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_removal: bool,
    /// Time since which the state lasts, if it is known. Of an agent that is offline: its last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// State according to the last report of an agent that is now offline or inactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reported: Option<AssignmentState>,
    /// Machine-readable reason in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Human-readable message. A longer one ends with an ellipsis; that of one stack is at most 1,000 characters, that in a
    /// list of stacks at most 240.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Agent in an overview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentOverview {
    /// Id of the agent.
    pub id: AgentId,
    /// Name, unique within the cluster.
    pub name: String,
    /// Name of the agent's cluster.
    pub cluster_name: String,
    /// Status of the agent.
    pub status: AgentStatus,
    /// True if heartbeats arrive.
    pub is_online: bool,
    /// Time of the last heartbeat; null if there was none.
    #[serde(default)]
    pub last_heartbeat: Option<Timestamp>,
    /// Seconds since the last heartbeat.
    #[serde(default)]
    pub heartbeat_age_seconds: Option<i64>,
}

/// Newest revision of a stack in an overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionOverview {
    /// Number of the revision within its stack, counted from 1.
    pub number: i64,
    /// Position in the global order of revisions.
    pub sequence_id: Sequence,
    /// Time of submission.
    pub submitted_at: Timestamp,
    /// True if agents must remove the stack.
    pub is_deletion_marker: bool,
}

/// Stack in an overview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackOverview {
    /// Id of the stack.
    pub id: StackId,
    /// Name of the stack.
    pub name: String,
    /// Id of the generator that owns the stack.
    pub generator_id: GeneratorId,
    /// Time of deletion. A deleted stack is listed until every agent has confirmed its removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Newest revision; null if there is none.
    #[serde(default)]
    pub revision: Option<RevisionOverview>,
    /// Agents that should have the stack or must remove it, in the order of `agents`.
    pub assignments: Vec<AssignmentStatus>,
}

/// Stacks on clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusOverview {
    /// Time of the broker.
    pub time: Timestamp,
    /// Agents by name: those that a generator may know are registered with it or have one of its stacks. With the filter of a
    /// stack only the agents of that stack.
    pub agents: Vec<AgentOverview>,
    /// Stacks by name.
    pub stacks: Vec<StackOverview>,
}

/// Revision in the history of its stack, without its bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionSummary {
    /// Id of the revision.
    pub id: RevisionId,
    /// Number of the revision within its stack, counted from 1.
    pub number: i64,
    /// Position in the global order of revisions.
    pub sequence_id: Sequence,
    /// Time of submission.
    pub submitted_at: Timestamp,
    /// Checksum of the bundle.
    pub yaml_checksum: Checksum,
    /// Size of the bundle; null if it is stored encrypted.
    #[serde(default)]
    pub bytes: Option<i64>,
    /// True if agents must remove the stack.
    pub is_deletion_marker: bool,
}
