//! People whose record was found in the store a short time ago, so that not every request reads it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sindri_model::AdminId;
use tokio::time::Instant;

/// Time after which the record is read again: it may have been deleted on another broker.
const KNOWN_TIME: Duration = Duration::from_secs(60);
/// Limit on the people in memory.
const PEOPLE_MAX: usize = 4_096;

/// People with a record.
#[derive(Debug, Default)]
pub(crate) struct KnownPeople(Mutex<BTreeMap<AdminId, Instant>>);

impl KnownPeople {
    /// Returns true if the record of a person was found within the last minute.
    pub(crate) fn is_known(&self, person: AdminId, now: Instant) -> bool {
        self.lock().get(&person).is_some_and(|found| now.duration_since(*found) < KNOWN_TIME)
    }

    /// Records that a person has a record.
    pub(crate) fn insert(&self, person: AdminId, now: Instant) {
        let mut people = self.lock();
        if people.len() >= PEOPLE_MAX {
            people.clear();
        }
        people.insert(person, now);
    }

    /// Forgets all of them, because a record may have been deleted.
    pub(crate) fn invalidate(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AdminId, Instant>> {
        // Every change is one call, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
