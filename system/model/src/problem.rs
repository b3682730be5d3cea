//! Body of every error response.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An error with a machine-readable code and a human-readable message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Stable code in snake case.
    pub code: String,
    /// One sentence that names the object and the problem.
    pub message: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}
