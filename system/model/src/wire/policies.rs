//! Annotations of stacks that control how agents treat them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::StackId;
#[cfg(feature = "schema")]
use crate::limits::SUSPENSION_AGENTS_MAX;

/// Prefix of the annotations that agents read.
pub const POLICY_PREFIX: &str = "sindri.dev/";

/// Annotation of a stack: names of stacks of the same generator, separated by commas, that must be ready on a cluster before it
/// is applied there.
pub const DEPENDS_ON_ANNOTATION: &str = "sindri.dev/depends-on";

/// The annotations of one stack that agents read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackPolicy {
    /// Id of the stack.
    pub stack_id: StackId,
    /// Annotations by key; each key begins with `sindri.dev/`.
    pub annotations: BTreeMap<String, String>,
    /// Stacks that must be ready on the agent's cluster before it applies this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<StackDependency>,
}

/// Request to suspend a stack on the clusters of some agents, or to write it there again. It changes no other cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuspensionChange {
    /// Names of the agents on whose clusters the stack is suspended.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = SUSPENSION_AGENTS_MAX)))]
    pub suspend: Vec<String>,
    /// Names of the agents on whose clusters the stack is written again.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = SUSPENSION_AGENTS_MAX)))]
    pub resume: Vec<String>,
}

/// Clusters on which a stack is suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackSuspension {
    /// True if the stack is suspended on every cluster.
    pub everywhere: bool,
    /// Names of the agents on whose clusters it is suspended otherwise.
    pub agents: Vec<String>,
}

/// A stack on which another one depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackDependency {
    /// Name of the stack.
    pub name: String,
    /// Id of the stack; absent if the stack is not in the agent's target state.
    #[serde(default)]
    pub stack_id: Option<StackId>,
}
