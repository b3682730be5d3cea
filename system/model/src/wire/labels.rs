//! Labels and annotations of agents and stacks. An agent receives each stack that has a label or an
//! annotation in common with it.

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{ANNOTATION_KEY_CHARS_MAX, ANNOTATION_VALUE_CHARS_MAX, LABEL_CHARS_MAX, WORD_PATTERN};
use crate::{AgentId, LinkId, StackId};

/// Label of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentLabel {
    /// Id of the label.
    pub id: LinkId,
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Label.
    pub label: String,
}

/// Request to label an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewAgentLabel {
    /// Id of the agent; must equal the id in the path.
    pub agent_id: AgentId,
    /// Label.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = LABEL_CHARS_MAX), regex(pattern = WORD_PATTERN)))]
    pub label: String,
}

/// Annotation of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentAnnotation {
    /// Id of the annotation.
    pub id: LinkId,
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Key, unique for the agent.
    pub key: String,
    /// Value.
    pub value: String,
}

/// Request to annotate an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewAgentAnnotation {
    /// Id of the agent; must equal the id in the path.
    pub agent_id: AgentId,
    /// Key, unique for the agent.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = ANNOTATION_KEY_CHARS_MAX), regex(pattern = WORD_PATTERN)))]
    pub key: String,
    /// Value.
    #[cfg_attr(feature = "schema", schemars(length(max = ANNOTATION_VALUE_CHARS_MAX)))]
    pub value: String,
}

/// Value of an annotation whose key is in the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnnotationValue {
    /// Value.
    #[cfg_attr(feature = "schema", schemars(length(max = ANNOTATION_VALUE_CHARS_MAX)))]
    pub value: String,
}

/// Label of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackLabel {
    /// Id of the label.
    pub id: LinkId,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Label.
    pub label: String,
}

/// Annotation of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackAnnotation {
    /// Id of the annotation.
    pub id: LinkId,
    /// Id of the stack.
    pub stack_id: StackId,
    /// Key, unique for the stack.
    pub key: String,
    /// Value.
    pub value: String,
}

/// Request to annotate a stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewStackAnnotation {
    /// Id of the stack; must equal the id in the path.
    pub stack_id: StackId,
    /// Key, unique for the stack.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = ANNOTATION_KEY_CHARS_MAX), regex(pattern = WORD_PATTERN)))]
    pub key: String,
    /// Value.
    #[cfg_attr(feature = "schema", schemars(length(max = ANNOTATION_VALUE_CHARS_MAX)))]
    pub value: String,
}
