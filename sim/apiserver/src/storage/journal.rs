//! Journal of committed writes, which the oracles of a simulation read.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::object::key::StoredKey;

/// Author of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A client of the API.
    Client {
        /// Its user agent, as sent.
        user_agent: String,
        /// Field manager of the write.
        field_manager: String,
    },
    /// A controller inside the control plane.
    Controller(&'static str),
}

/// Kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The object was created by a POST.
    Create,
    /// The object was replaced by a PUT.
    Update,
    /// The object was changed by a patch.
    Patch,
    /// The object was created or changed by server-side apply.
    Apply,
    /// The object was deleted, or marked as being deleted.
    Delete,
}

/// One committed write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Time of the write.
    pub at: Timestamp,
    /// Author of the write.
    pub actor: Actor,
    /// Kind of the write.
    pub verb: Verb,
    /// The subresource that was written, such as `status`; empty for the object itself.
    pub subresource: &'static str,
    /// Key of the object.
    pub key: Arc<StoredKey>,
    /// UID of the object.
    pub uid: String,
    /// Revision of the store after the write.
    pub resource_version: u64,
    /// The object before; `None` when it was created.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` when it is gone.
    pub after: Option<Arc<Value>>,
}

/// The writes since they were last taken.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    writes: Vec<Write>,
    enabled: bool,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self { writes: Vec::new(), enabled: true }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Drops the recorded writes and records no more.
    pub(crate) fn disable(&mut self) {
        *self = Self { writes: Vec::new(), enabled: false };
    }

    pub(crate) fn push(&mut self, write: Write) {
        self.writes.push(write);
    }

    /// Removes and returns the recorded writes, in order.
    pub(crate) fn take(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.writes)
    }
}

/// Actor and verb of a write, as the journal records them.
#[derive(Clone, Debug)]
pub(crate) struct Attribution {
    pub(crate) actor: Actor,
    pub(crate) verb: Verb,
    pub(crate) subresource: &'static str,
}

impl Attribution {
    pub(crate) fn controller(name: &'static str, verb: Verb) -> Self {
        Self { actor: Actor::Controller(name), verb, subresource: "" }
    }
}
