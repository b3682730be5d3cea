//! Filter of the audit log, and failed logins, which are entries of it.

use std::net::IpAddr;

use jiff::Timestamp;
use sindri_model::AuditId;

/// Filter of the audit log: an entry must match every field that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Type of the actor.
    pub actor_type: Option<String>,
    /// Id of the actor.
    pub actor_id: Option<String>,
    /// Action; a trailing `*` matches any ending.
    pub action: Option<String>,
    /// Type of the resource.
    pub resource_type: Option<String>,
    /// Id of the resource.
    pub resource_id: Option<String>,
    /// Earliest time.
    pub from: Option<Timestamp>,
    /// Latest time.
    pub to: Option<Timestamp>,
    /// Largest number of entries.
    pub limit: i64,
    /// Number of entries to skip.
    pub offset: i64,
    /// Entry after which the page begins; an alternative to an offset.
    pub after: Option<AuditId>,
}

/// A request with a key that was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedLogin {
    /// Time of the request.
    pub time: Timestamp,
    /// Address from which it came.
    pub peer: Option<IpAddr>,
    /// Beginning of the key's short token, which is not secret; None if the text was not a key.
    pub key_prefix: Option<String>,
    /// Reason.
    pub reason: LoginFailure,
    /// Number of failed logins before this one that have no entry of their own.
    pub unrecorded: u64,
}

/// Reason for which a key was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginFailure {
    /// The text is not a key.
    Malformed,
    /// The key is unknown.
    Unknown,
    /// The key or the token has expired.
    Expired,
    /// The token of a person is not valid.
    InvalidToken,
}

impl LoginFailure {
    /// Returns the name in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed_key",
            Self::Unknown => "unknown_key",
            Self::Expired => "expired_key",
            Self::InvalidToken => "invalid_token",
        }
    }
}
