//! Settings that were read again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Result of reading the settings again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigReloadResponse {
    /// True: the settings are valid. Invalid ones are an error, and nothing changes.
    pub success: bool,
    /// Time at which they were read.
    pub reloaded_at: Timestamp,
    /// Summary for people.
    #[serde(default)]
    pub message: Option<String>,
    /// Settings that differ from those in use.
    pub changes: Vec<ConfigChange>,
}

/// A setting that differs from the one in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigChange {
    /// Name of the setting.
    pub key: String,
    /// Value before, without secrets; null if it was not set.
    #[serde(default)]
    pub old_value: Option<String>,
    /// Value now, without secrets; null if it is not set.
    #[serde(default)]
    pub new_value: Option<String>,
    /// False: the setting takes effect at the next start.
    pub applied: bool,
}
