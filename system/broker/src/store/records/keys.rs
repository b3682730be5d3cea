//! Access keys and their holders.

use sindri_model::{AgentId, GeneratorId, Pak, PakDigest};

/// The stored part of a key: enough to verify it, not enough to use it.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// Short token by which the key is found.
    pub short: String,
    /// Digest that verifies the key.
    pub digest: PakDigest,
}

impl From<&Pak> for KeyRecord {
    fn from(pak: &Pak) -> Self {
        Self { short: pak.short().to_owned(), digest: pak.digest() }
    }
}

/// Holder of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyHolder {
    /// The administrator.
    Admin,
    /// An agent.
    Agent(AgentId),
    /// A generator.
    Generator(GeneratorId),
}

/// A key as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Digest that verifies the key.
    pub digest: PakDigest,
    /// Its holder.
    pub holder: KeyHolder,
    /// False if the holder is a generator that was deactivated: the key then only reads.
    pub is_active: bool,
}
