//! What a stack's annotations tell agents about how to treat it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::StackId;

/// What the keys of annotations begin with that are meant for agents.
pub const POLICY_PREFIX: &str = "sindri.dev/";

/// The annotations of one stack that are meant for agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackPolicy {
    /// The stack.
    pub stack_id: StackId,
    /// By key; each begins with `sindri.dev/`.
    pub annotations: BTreeMap<String, String>,
}
