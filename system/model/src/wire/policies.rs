//! Annotations of stacks that control how agents treat them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::StackId;

/// Prefix of the annotations that agents read.
pub const POLICY_PREFIX: &str = "sindri.dev/";

/// The annotations of one stack that agents read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackPolicy {
    /// Id of the stack.
    pub stack_id: StackId,
    /// Annotations by key; each key begins with `sindri.dev/`.
    pub annotations: BTreeMap<String, String>,
}
