//! Errors of a store.

use std::fmt;
use std::time::Duration;

use sindri_model::wire::ApprovalState;
use sindri_model::{AgentId, ApprovalId, GeneratorId};
use thiserror::Error;

/// Kind of a stored record, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An administrator.
    Admin,
    /// An agent.
    Agent,
    /// An annotation of an agent.
    AgentAnnotation,
    /// A label of an agent.
    AgentLabel,
    /// A plan that an agent does not execute without an approval.
    Approval,
    /// A webhook message.
    Delivery,
    /// An event.
    Event,
    /// A generator.
    Generator,
    /// A text for a stack that is not submitted.
    Proposal,
    /// A registration of an agent with a generator.
    Registration,
    /// A revision of a stack.
    Revision,
    /// A stack.
    Stack,
    /// An annotation of a stack.
    StackAnnotation,
    /// A label of a stack.
    StackLabel,
    /// The report of an agent about a stack.
    StackStatus,
    /// An explicit target.
    Target,
    /// A webhook subscription.
    Webhook,
}

impl RecordKind {
    /// Returns the name that machine-readable error codes contain.
    pub fn code(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::AgentAnnotation => "agent_annotation",
            Self::AgentLabel => "agent_label",
            Self::Approval => "approval",
            Self::Delivery => "delivery",
            Self::Event => "agent_event",
            Self::Generator => "generator",
            Self::Proposal => "proposal",
            Self::Registration => "registration",
            Self::Revision => "deployment_object",
            Self::Stack => "stack",
            Self::StackAnnotation => "stack_annotation",
            Self::StackLabel => "stack_label",
            Self::StackStatus => "stack_status",
            Self::Target => "agent_target",
            Self::Webhook => "webhook",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AgentAnnotation | Self::StackAnnotation => "annotation",
            Self::AgentLabel | Self::StackLabel => "label",
            Self::Delivery => "webhook delivery",
            Self::Event => "event",
            Self::Revision => "deployment object",
            Self::StackStatus => "status of stack",
            Self::Target => "target",
            Self::Admin => "administrator",
            Self::Agent | Self::Approval | Self::Generator | Self::Proposal => self.code(),
            Self::Registration | Self::Stack | Self::Webhook => self.code(),
        })
    }
}

/// Error of a call to a store. The call has changed nothing, except possibly after [`StoreError::Failed`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// The subject of the call does not exist.
    #[error("{kind} {name} does not exist")]
    NotFound {
        /// Kind of the record.
        kind: RecordKind,
        /// Its name or id.
        name: String,
    },
    /// A record with this name exists already.
    #[error("{kind} {name} exists already")]
    AlreadyExists {
        /// Kind of the record.
        kind: RecordKind,
        /// Its name or id.
        name: String,
    },
    /// A record that the call refers to does not exist.
    #[error("{kind} {name} does not exist")]
    MissingReference {
        /// Kind of the record.
        kind: RecordKind,
        /// Its name or id.
        name: String,
    },
    /// The agent does not accept stacks of this generator.
    #[error("agent {agent} is not registered with generator {generator}, whose stack this is")]
    NotRegistered {
        /// The agent.
        agent: AgentId,
        /// The generator.
        generator: GeneratorId,
    },
    /// The approval is no longer pending.
    #[error("approval {approval} is {state}")]
    AlreadyDecided {
        /// The approval.
        approval: ApprovalId,
        /// Its state.
        state: ApprovalState,
    },
    /// Another request has replaced or deleted the key meanwhile.
    #[error("another request has replaced or deleted this key")]
    KeyChanged,
    /// Another process of the agent has announced itself as the leader; holds its name.
    #[error("process {0} of the agent is the leader, so that reports of other processes are rejected")]
    OtherLeader(String),
    /// No administrator with a key that does not expire would be left.
    #[error("at least one administrator must have all permissions and a key that does not expire")]
    LastAdmin,
    /// Stacks would depend on themselves; holds the names along the cycle.
    #[error("the stack would depend on itself: {}", .0.join(" needs "))]
    DependencyCycle(Vec<String>),
    /// A policy annotation has a value that agents could not use; holds the reason.
    #[error("{0}")]
    InvalidPolicy(String),
    /// A suspended stack is to be deleted; holds its name. Its agents would neither delete nor confirm anything.
    #[error("stack {0} is suspended, so its objects cannot be deleted; resume it first")]
    StackSuspended(String),
    /// The actor is not the owner of the record.
    #[error("the actor is not the owner")]
    NotOwner,
    /// The generator of the actor was deactivated.
    #[error("this generator is deactivated; an administrator can activate it")]
    GeneratorInactive,
    /// There are too many proposals that have not expired.
    #[error("{reason}; the first one expires in {} s", .wait.as_secs())]
    TooManyProposals {
        /// Limit that is reached.
        reason: String,
        /// Time after which there is room for another one.
        wait: Duration,
    },
    /// The idempotency key was used before, and the response to that request cannot be repeated.
    #[error("this Idempotency-Key was used before, and has created {0}")]
    IdempotencyKeyReused(String),
    /// The idempotency key was used before for another request.
    #[error("this Idempotency-Key was used before for another request")]
    IdempotencyKeyMismatch,
    /// The store is overloaded or unreachable; as far as known, the call has changed nothing.
    #[error("the store does not respond")]
    Unavailable,
    /// The store itself failed. The change may be durable or not.
    #[error("the store failed: {0}")]
    Failed(String),
}
