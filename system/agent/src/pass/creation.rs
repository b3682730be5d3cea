//! Creation of an object that is applied once, and its result, which an inventory keeps when the object is gone. Both are
//! stored by `inventory`.

use sindri_health::{AssessedObject, Health, HealthState};
use sindri_model::Checksum;

/// Longer reasons of failures are cut: a chunk must fit into a ConfigMap.
const FAILURE_CHARS_MAX: usize = 200;

/// Creation of an object that is applied once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Checksum of the manifest with which it was created.
    pub manifest: Checksum,
    /// Its result, which is still known when the object is gone.
    pub result: CreationResult,
}

/// Result of an object that is applied once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreationResult {
    /// It was seen neither ready nor failed. If it is gone, nothing is concluded from its absence.
    Unseen,
    /// It was ready, or a Job was complete.
    Completed,
    /// It failed for this reason.
    Failed(String),
}

impl CreationResult {
    /// Returns the result that follows from the health of an object; `None` if there is none yet.
    pub fn from_health(health: &Health) -> Option<Self> {
        match health.state {
            HealthState::Ready => Some(Self::Completed),
            HealthState::Failing => {
                let reason = format!("{}: {}", health.reason, health.message);
                Some(Self::Failed(reason.chars().take(FAILURE_CHARS_MAX).collect()))
            }
            HealthState::Unknown | HealthState::Progressing => None,
        }
    }
}

/// Result that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenResult {
    /// The result.
    pub result: CreationResult,
    /// True if the object was being deleted.
    pub is_terminating: bool,
}

impl SeenResult {
    /// Returns the result of an object, also if it is being deleted; `None` if there is none yet.
    pub fn from_assessed(assessed: &AssessedObject) -> Option<Self> {
        let before_deletion = assessed.before_deletion.as_deref();
        let result = CreationResult::from_health(before_deletion.unwrap_or(&assessed.health))?;
        Some(Self { result, is_terminating: before_deletion.is_some() })
    }
}
