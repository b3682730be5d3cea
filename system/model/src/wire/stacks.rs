//! Stacks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, NO_CONTROL_PATTERN};
use crate::{GeneratorId, StackId};

/// A stack: Kubernetes objects that are deployed together, in revisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stack {
    /// Id of the stack.
    pub id: StackId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time of deletion; null if not deleted.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Name, unique among the existing stacks of the generator.
    pub name: String,
    /// Human-readable description.
    #[serde(default)]
    pub description: Option<String>,
    /// Id of the generator that owns the stack.
    pub generator_id: GeneratorId,
}

/// Request to change a stack. A complete `Stack` is accepted; fields other than these are ignored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateStackRequest {
    /// If present, it must equal the id in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<StackId>,
    /// New name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: Option<String>,
    /// New description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = DESCRIPTION_CHARS_MAX)))]
    pub description: Option<String>,
}

/// Request to create a stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewStack {
    /// Name, unique among the stacks of the generator.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: String,
    /// Human-readable description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = DESCRIPTION_CHARS_MAX)))]
    pub description: Option<String>,
    /// Id of the generator that owns the stack.
    pub generator_id: GeneratorId,
}
