//! The one shape of every error on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An error answer: a stable code for programs, a message for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Stable, in snake case.
    pub code: String,
    /// One sentence that says what was wrong and with what.
    pub message: String,
    /// More, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}
