//! The types that travel between broker, agents and clients, field for field as the public API has them.
//!
//! Existing strict clients read these: nothing is added to an existing operation's answer. What our own
//! agent needs beyond them travels in headers.

mod approvals;
mod audit;
mod fleet;
mod health;
mod labels;
mod policies;
mod status;
mod webhooks;

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{AgentId, Checksum, EventId, GeneratorId, LinkId, RevisionId, Sequence, StackId};

pub use approvals::{Approval, ApprovalRequest, ApprovalState, ApprovalStateError};
pub use audit::{AuditLog, AuditLogListResponse, PakSummary};
pub use fleet::{AgentFleetStatusResponse, FleetAgentRecord};
pub use health::{
    DeploymentHealth, DeploymentHealthResponse, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusUpdate,
    StackHealthResponse,
};
pub use labels::{
    AgentAnnotation, AgentLabel, NewAgentAnnotation, NewAgentLabel, NewStackAnnotation, StackAnnotation, StackLabel,
};
pub use policies::{POLICY_PREFIX, StackPolicy};
pub use status::{
    AgentStackStatus, Condition, ConditionStatus, ReportedCondition, StackState, StackStatus, StackStatusReport,
    condition,
};
pub use webhooks::{
    CreateWebhookRequest, DeliveryResultRequest, PendingWebhookDelivery, TestWebhookResponse, UpdateWebhookRequest,
    WebhookDelivery, WebhookFilters, WebhookResponse,
};

/// The header on a target state that carries the epoch of the broker's database.
pub const EPOCH_HEADER: &str = "x-sindri-epoch";

/// The header that carries an agent's own status: on the answers to its polls and heartbeats, and on a poll, where it is
/// the status that the agent believes to have.
pub const AGENT_STATUS_HEADER: &str = "sindri-agent-status";

/// Whether an agent acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum AgentStatus {
    /// Fetches target state and acts.
    Active,
    /// Sends heartbeats, changes nothing. Every new agent.
    Inactive,
}

impl AgentStatus {
    /// As it travels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Inactive => "INACTIVE",
        }
    }

    /// The status with this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Active, Self::Inactive].into_iter().find(|status| status.as_str() == name)
    }
}

/// An agent as the broker knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Unique together with the cluster's name.
    pub name: String,
    /// The cluster it runs in.
    pub cluster_name: String,
    /// Whether it acts.
    pub status: AgentStatus,
    /// When it last sent a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<Timestamp>,
    /// Whether it reached its API server, as it last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_reachable: Option<bool>,
    /// How long its API server took to answer, as it last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_api_latency_ms: Option<i64>,
    /// When it last said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_reported_at: Option<Timestamp>,
}

/// Asks for a new agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateAgentRequest {
    /// Unique together with the cluster's name.
    pub name: String,
    /// The cluster it runs in.
    pub cluster_name: String,
    /// Generators to register it with at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_ids: Option<Vec<GeneratorId>>,
}

/// A new agent with its key, shown this once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateAgentResponse {
    /// The agent.
    pub agent: Agent,
    /// Its key.
    pub initial_pak: String,
}

/// An agent with its new key, shown this once; the old one is worth nothing any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RotateAgentPakResponse {
    /// The agent.
    pub agent: Agent,
    /// Its key.
    pub pak: String,
}

/// Changes any of an agent's fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateAgentRequest {
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new cluster name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// A new status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AgentStatus>,
}

/// Who submits stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generator {
    /// Its id.
    pub id: GeneratorId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Unique.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it may submit.
    pub is_active: bool,
    /// Whether it belongs to the broker itself.
    pub is_system: bool,
    /// When it last did something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_active_at: Option<Timestamp>,
}

/// Changes a generator. The whole object may be sent, as it was read; what is not its own to change is ignored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateGeneratorRequest {
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it may submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

/// Asks for a new generator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewGenerator {
    /// Unique.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A new generator with its key, shown this once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateGeneratorResponse {
    /// The generator.
    pub generator: Generator,
    /// Its key.
    pub pak: String,
}

/// Which agent to register; an agent that registers itself may leave it out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentRegistrationBody {
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// An agent accepts stacks of a generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentGeneratorRegistration {
    /// Its id.
    pub id: LinkId,
    /// The agent.
    pub agent_id: AgentId,
    /// The generator.
    pub generator_id: GeneratorId,
    /// Since when.
    pub registered_at: Timestamp,
}

/// A stack: what is deployed together, in revisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stack {
    /// Its id.
    pub id: StackId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Unique among the stacks of its generator that live.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whose it is.
    pub generator_id: GeneratorId,
}

/// Changes a stack. The whole object may be sent, as it was read; what is not its own to change is ignored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateStackRequest {
    /// Must be the stack of the path, if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<StackId>,
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Asks for a new stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewStack {
    /// Unique among the stacks of its generator.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whose it is.
    pub generator_id: GeneratorId,
}

/// One revision of a stack, or the instruction to remove it. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentObject {
    /// Its id.
    pub id: RevisionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The same: it never changes.
    pub updated_at: Timestamp,
    /// When it was withdrawn, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Its position in the order of everything that was submitted.
    pub sequence_id: Sequence,
    /// The stack.
    pub stack_id: StackId,
    /// The bundle, exactly as it was submitted.
    pub yaml_content: String,
    /// The checksum of that text.
    pub yaml_checksum: Checksum,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// Whether it tells agents to remove the stack.
    pub is_deletion_marker: bool,
}

/// Submits a revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateDeploymentObjectRequest {
    /// The bundle.
    #[serde(default)]
    pub yaml_content: String,
    /// Whether it tells agents to remove the stack.
    #[serde(default)]
    pub is_deletion_marker: bool,
}

/// A stack goes to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentTarget {
    /// Its id.
    pub id: LinkId,
    /// The agent.
    pub agent_id: AgentId,
    /// The stack.
    pub stack_id: StackId,
}

/// Sends a stack to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAgentTarget {
    /// The agent; must be the one of the path.
    pub agent_id: AgentId,
    /// The stack.
    pub stack_id: StackId,
}

/// What an agent reports: it carried a revision out, or failed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub enum EventStatus {
    /// Carried out.
    Success,
    /// Not, or not wholly.
    Failure,
    /// A word of another client; recorded, and nothing follows from it.
    Other(String),
}

impl EventStatus {
    /// As it travels.
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

/// The type of event that agents send.
pub const EVENT_TYPE_DEPLOY: &str = "DEPLOY";

/// An outcome that an agent reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentEvent {
    /// Its id.
    pub id: EventId,
    /// When it was recorded.
    pub created_at: Timestamp,
    /// The same: it never changes.
    pub updated_at: Timestamp,
    /// When it was removed, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Who reported it.
    pub agent_id: AgentId,
    /// Of which revision.
    pub deployment_object_id: RevisionId,
    /// `DEPLOY`.
    pub event_type: String,
    /// How it went.
    pub status: EventStatus,
    /// What an operator should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Reports an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAgentEvent {
    /// Who reports; must be the one of the path.
    pub agent_id: AgentId,
    /// Of which revision.
    pub deployment_object_id: RevisionId,
    /// `DEPLOY`; at most 50 characters.
    pub event_type: String,
    /// How it went.
    pub status: EventStatus,
    /// What an operator should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An agent lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HeartbeatReport {
    /// Whether it reached its API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_reachable: Option<bool>,
    /// How long that took to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k8s_api_latency_ms: Option<i64>,
}

/// Whose key was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuthResponse {
    /// The administrator's.
    pub admin: bool,
    /// An agent's, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// A generator's, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<GeneratorId>,
    /// Whether it may only read.
    pub readonly: bool,
}
