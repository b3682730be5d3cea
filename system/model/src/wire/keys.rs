//! Keys: lists and rotations.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::PakId;
#[cfg(feature = "schema")]
use crate::limits::GRACE_SECONDS_MAX;

/// A key without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PakSummary {
    /// Id of the key, for filters.
    pub id: PakId,
    /// Name of the key's owner.
    pub name: String,
}

/// Request to replace a key. Every field is optional, and so is the body.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RotatePakRequest {
    /// Seconds for which the previous key stays valid; 0 or null: it ends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = GRACE_SECONDS_MAX)))]
    pub grace_seconds: Option<u32>,
    /// Time from which the new key is invalid; without it the key does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<Timestamp>,
}

/// The new key of the administrator that sent the request. It is not returned again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RotateAdminPakResponse {
    /// New key of the administrator.
    pub pak: String,
}
