//! Administrators: people and programs whose keys administrate the whole broker, or only read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::AdminId;
#[cfg(feature = "schema")]
use crate::limits::{NAME_CHARS_MAX, NO_CONTROL_PATTERN};

/// An administrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Admin {
    /// Id of the administrator.
    pub id: AdminId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Unique name.
    pub name: String,
    /// Operations that the key allows.
    pub role: AdminRole,
    /// Time from which the current key is invalid; null if it does not expire.
    #[serde(default)]
    pub key_expires_at: Option<Timestamp>,
}

/// Operations that the key of an administrator allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AdminRole {
    /// Every operation.
    #[default]
    Admin,
    /// Every operation that changes nothing.
    Reader,
}

impl AdminRole {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Reader => "reader",
        }
    }
}

/// Request to create an administrator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewAdmin {
    /// Unique name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: String,
    /// Operations that the key allows.
    #[serde(default)]
    pub role: AdminRole,
    /// Time from which the key is invalid; without it the key does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<Timestamp>,
}

/// An administrator and its new key. The key is not returned again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdminWithPak {
    /// The administrator.
    pub admin: Admin,
    /// Key of the administrator.
    pub pak: String,
}
