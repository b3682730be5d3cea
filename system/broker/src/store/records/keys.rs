//! Access keys and their holders.

use jiff::Timestamp;
use serde_json::Value;
use sindri_model::{AdminId, AgentId, GeneratorId, Pak, PakDigest};

/// The stored part of a key: enough to verify it, not enough to use it.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// Short token by which the key is found.
    pub short: String,
    /// Digest that verifies the key.
    pub digest: PakDigest,
    /// Time from which the key is invalid. None: never.
    pub expires_at: Option<Timestamp>,
}

impl From<&Pak> for KeyRecord {
    fn from(pak: &Pak) -> Self {
        Self { short: pak.short().to_owned(), digest: pak.digest(), expires_at: None }
    }
}

impl KeyRecord {
    /// Adds the end of the key, if it has one, to the content of a request, by which a repeated request is recognized.
    pub(crate) fn add_to_request(&self, mut content: Value) -> Value {
        if let Some(end) = self.expires_at {
            content["key_expires_at"] = end.to_string().into();
        }
        content
    }
}

/// Replacement of the key of a holder by another.
#[derive(Clone, Debug)]
pub struct KeyRotation {
    /// The keys that are replaced. If the holder has others, the rotation fails.
    pub expected: Vec<PakDigest>,
    /// The new key.
    pub key: KeyRecord,
    /// Time until which the replaced key stays valid. None: it ends at once.
    pub previous_until: Option<Timestamp>,
}

/// Holder of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyHolder {
    /// An administrator.
    Admin(AdminId),
    /// An agent.
    Agent(AgentId),
    /// A generator.
    Generator(GeneratorId),
}

/// Operations that a key allows, beyond those of its holder's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAccess {
    /// All of them.
    Full,
    /// Those that change nothing.
    ReadOnly,
    /// Those of a deactivated generator, which change nothing, or of a deactivated agent, which gets no bundles.
    Deactivated,
}

/// A key as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Digest that verifies the key.
    pub digest: PakDigest,
    /// Its holder.
    pub holder: KeyHolder,
    /// Operations that it allows.
    pub access: KeyAccess,
    /// Time from which it is invalid. None: never.
    pub expires_at: Option<Timestamp>,
}

impl StoredKey {
    /// Returns true if the key has expired.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}
