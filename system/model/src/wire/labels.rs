//! Labels and annotations of agents and stacks: an agent gets a stack when the two share one.

use serde::{Deserialize, Serialize};

use crate::{AgentId, LinkId, StackId};

/// A label of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentLabel {
    /// Its id.
    pub id: LinkId,
    /// The agent.
    pub agent_id: AgentId,
    /// The label.
    pub label: String,
}

/// Labels an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAgentLabel {
    /// The agent; must be the one of the path.
    pub agent_id: AgentId,
    /// The label; at most 63 characters.
    pub label: String,
}

/// An annotation of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentAnnotation {
    /// Its id.
    pub id: LinkId,
    /// The agent.
    pub agent_id: AgentId,
    /// Unique for the agent.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Annotates an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAgentAnnotation {
    /// The agent; must be the one of the path.
    pub agent_id: AgentId,
    /// Unique for the agent.
    pub key: String,
    /// The value.
    pub value: String,
}

/// A label of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackLabel {
    /// Its id.
    pub id: LinkId,
    /// The stack.
    pub stack_id: StackId,
    /// The label.
    pub label: String,
}

/// An annotation of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackAnnotation {
    /// Its id.
    pub id: LinkId,
    /// The stack.
    pub stack_id: StackId,
    /// Unique for the stack.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Annotates a stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewStackAnnotation {
    /// The stack; must be the one of the path.
    pub stack_id: StackId,
    /// Unique for the stack.
    pub key: String,
    /// The value.
    pub value: String,
}
