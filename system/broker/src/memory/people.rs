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
pub(crate) struct KnownPeople(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    people: BTreeMap<AdminId, Instant>,
    generation: u64,
}

/// Number of times that the people were forgotten. A record that was read in an older generation may have been deleted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeopleGeneration(u64);

impl KnownPeople {
    /// Returns true if the record of a person was found within the last minute.
    pub(crate) fn is_known(&self, person: AdminId, now: Instant) -> bool {
        self.lock().people.get(&person).is_some_and(|found| now.duration_since(*found) < KNOWN_TIME)
    }

    /// Returns the generation. Call it before reading the store, and pass it to [`Self::insert`].
    pub(crate) fn generation(&self) -> PeopleGeneration {
        PeopleGeneration(self.lock().generation)
    }

    /// Records that a person has a record, unless the people were forgotten since `generation`.
    pub(crate) fn insert(&self, person: AdminId, now: Instant, generation: PeopleGeneration) {
        let mut state = self.lock();
        if state.generation != generation.0 {
            return;
        }
        if state.people.len() >= PEOPLE_MAX {
            state.people.clear();
        }
        state.people.insert(person, now);
    }

    /// Forgets all of them, because a record may have been deleted.
    pub(crate) fn invalidate(&self) {
        let mut state = self.lock();
        state.generation += 1;
        state.people.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use sindri_model::Entropy;

    use super::*;

    #[test]
    fn a_record_that_was_read_before_people_were_forgotten_does_not_count() {
        let (people, now) = (KnownPeople::default(), Instant::now());
        let person = AdminId::generate(&Entropy::new(|bytes| bytes.fill(1)));
        let generation = people.generation();
        people.invalidate();
        people.insert(person, now, generation);
        assert!(!people.is_known(person, now), "it may have been deleted meanwhile");
        people.insert(person, now, people.generation());
        assert!(people.is_known(person, now));
        assert!(!people.is_known(person, now + KNOWN_TIME));
    }
}
