//! Outcomes that agents report.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{EVENT_STATUS_CHARS_MAX, EVENT_TYPE_CHARS_MAX};
use crate::{AgentId, EventId, RevisionId, Sequence, StackId};

/// Result that an agent reports for a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub enum EventStatus {
    /// The revision was applied.
    Success,
    /// The revision was not applied, or only in part.
    Failure,
    /// A value that Sindri's agents do not send; it is recorded and has no effect.
    Other(String),
}

impl EventStatus {
    /// Returns the name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for EventStatus {
    fn from(word: String) -> Self {
        match word.as_str() {
            "SUCCESS" => Self::Success,
            "FAILURE" => Self::Failure,
            _ => Self::Other(word),
        }
    }
}

impl From<EventStatus> for String {
    fn from(status: EventStatus) -> Self {
        status.as_str().to_owned()
    }
}

impl FromStr for EventStatus {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(Self::from(word.to_owned()))
    }
}

impl fmt::Display for EventStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Event type of all events that Sindri's agents send.
pub const EVENT_TYPE_DEPLOY: &str = "DEPLOY";

/// An outcome that an agent reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentEvent {
    /// Id of the event.
    pub id: EventId,
    /// Time at which the event was recorded.
    pub created_at: Timestamp,
    /// Equal to `created_at`: an event never changes.
    pub updated_at: Timestamp,
    /// Time at which the event was removed; null if it was not.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Id of the agent that reported the outcome.
    pub agent_id: AgentId,
    /// Id of the revision.
    pub deployment_object_id: RevisionId,
    /// `DEPLOY`.
    pub event_type: String,
    /// Result.
    pub status: EventStatus,
    /// Human-readable message.
    #[serde(default)]
    pub message: Option<String>,
}

/// Report of an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewAgentEvent {
    /// Id of the reporting agent; must equal the id in the path.
    pub agent_id: AgentId,
    /// Id of the revision.
    pub deployment_object_id: RevisionId,
    /// `DEPLOY`; at most 50 characters.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = EVENT_TYPE_CHARS_MAX)))]
    pub event_type: String,
    /// Result.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1, max = EVENT_STATUS_CHARS_MAX)))]
    pub status: EventStatus,
    /// Human-readable message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An event with the names of what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedEvent {
    /// Id of the event.
    pub id: EventId,
    /// Time at which the event was recorded.
    pub created_at: Timestamp,
    /// Id of the agent that reported the outcome.
    pub agent_id: AgentId,
    /// Name of the agent.
    pub agent_name: String,
    /// Name of the agent's cluster.
    pub cluster_name: String,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Name of the stack, which may be deleted.
    pub stack_name: String,
    /// Sequence of the revision.
    pub sequence_id: Sequence,
    /// True if the revision tells agents to remove the stack.
    pub is_deletion_marker: bool,
    /// Result.
    pub status: EventStatus,
    /// Human-readable message.
    #[serde(default)]
    pub message: Option<String>,
}
