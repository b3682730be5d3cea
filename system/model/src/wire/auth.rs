//! Identity of a key's owner.

use serde::{Deserialize, Serialize};

use crate::{AgentId, GeneratorId};

/// Owner of the key that a request carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuthResponse {
    /// True for the key of an administrator that may change things.
    pub admin: bool,
    /// Id of the agent that owns the key.
    #[serde(default)]
    pub agent: Option<AgentId>,
    /// Id of the generator that owns the key.
    #[serde(default)]
    pub generator: Option<GeneratorId>,
    /// True if the key only permits reading.
    pub readonly: bool,
}
