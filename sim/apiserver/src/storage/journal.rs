//! The record of committed changes, which the oracles of a simulated world read.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::object::key::StoredKey;

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A client of the API.
    Client {
        /// Its user agent, as sent.
        user_agent: String,
        /// The field manager that the change is recorded under.
        field_manager: String,
    },
    /// A controller inside the control plane.
    Controller(&'static str),
}

/// What kind of change it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The object was made by a POST.
    Create,
    /// The object was replaced by a PUT.
    Update,
    /// The object was changed by a patch.
    Patch,
    /// The object was made or changed by server-side apply.
    Apply,
    /// The object was deleted, or marked as being deleted.
    Delete,
}

/// One committed change.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub actor: Actor,
    /// How.
    pub verb: Verb,
    /// The subresource that was written, such as `status`; empty for the object itself.
    pub subresource: &'static str,
    /// Which object.
    pub key: Arc<StoredKey>,
    /// The identity of that object.
    pub uid: String,
    /// The revision of the store that the change made.
    pub resource_version: u64,
    /// The object before; `None` when it was created.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` when it is gone.
    pub after: Option<Arc<Value>>,
}
