//! Generators, and the agents that are registered with them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::limits::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, NO_CONTROL_PATTERN};
use crate::{AgentId, GeneratorId, LinkId};

/// A generator: a client that submits stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generator {
    /// Id of the generator.
    pub id: GeneratorId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time of deletion; null if not deleted.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Unique name.
    pub name: String,
    /// Human-readable description.
    #[serde(default)]
    pub description: Option<String>,
    /// True if the generator may submit.
    pub is_active: bool,
    /// True for the broker's own generator.
    pub is_system: bool,
    /// Time of the last request.
    #[serde(default)]
    pub last_active_at: Option<Timestamp>,
}

/// Request to change a generator. A complete `Generator` is accepted; fields other than these are ignored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateGeneratorRequest {
    /// New name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: Option<String>,
    /// New description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = DESCRIPTION_CHARS_MAX)))]
    pub description: Option<String>,
    /// True if the generator may submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

/// Request to create a generator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewGenerator {
    /// Unique name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: String,
    /// Human-readable description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = DESCRIPTION_CHARS_MAX)))]
    pub description: Option<String>,
    /// Time from which the key is invalid; without it the key does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<Timestamp>,
}

/// A new generator and its key. The key is not returned again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateGeneratorResponse {
    /// The generator.
    pub generator: Generator,
    /// Key of the generator.
    pub pak: String,
}

/// Request to register an agent with a generator. An agent that registers itself may omit its id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentRegistrationBody {
    /// Id of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// Registration of an agent with a generator, whose stacks may then be targeted at the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentGeneratorRegistration {
    /// Id of the registration.
    pub id: LinkId,
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Id of the generator.
    pub generator_id: GeneratorId,
    /// Time of the registration.
    pub registered_at: Timestamp,
}
