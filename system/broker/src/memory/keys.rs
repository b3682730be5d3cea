//! Cache of recently used keys, so that authentication needs no query.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::Pak;

use crate::store::StoredKey;

/// Limit on cached keys, above the size of most fleets. When it is reached the cache is cleared.
const KEYS_MAX: usize = 65_536;

/// Keys by short token.
#[derive(Debug, Default)]
pub(crate) struct KeyCache(Mutex<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    /// Number of times that the cache was invalidated.
    generation: u64,
    by_short: BTreeMap<String, Vec<StoredKey>>,
}

impl KeyCache {
    /// Returns a key that is cached.
    pub(crate) fn find(&self, pak: &Pak) -> Option<StoredKey> {
        find_match(pak, self.lock().by_short.get(pak.short())?)
    }

    /// Returns the generation of the cache. Call it before reading the store, and pass it to [`Self::insert`].
    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Caches the keys that the store has under a short token, and returns `pak` among them. Nothing is
    /// cached if the cache was invalidated since `generation`, or if none of them is `pak`.
    pub(crate) fn insert(&self, pak: &Pak, stored: Vec<StoredKey>, generation: u64) -> Option<StoredKey> {
        let key = find_match(pak, &stored)?;
        let mut state = self.lock();
        if state.generation == generation {
            if state.by_short.len() >= KEYS_MAX {
                state.by_short.clear();
            }
            state.by_short.insert(pak.short().to_owned(), stored);
        }
        Some(key)
    }

    /// Clears the cache, because keys were removed, or a holder was activated or deactivated.
    pub(crate) fn invalidate(&self) {
        let mut state = self.lock();
        state.generation += 1;
        state.by_short.clear();
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find_match(pak: &Pak, stored: &[StoredKey]) -> Option<StoredKey> {
    stored.iter().find(|key| pak.matches(&key.digest)).cloned()
}
