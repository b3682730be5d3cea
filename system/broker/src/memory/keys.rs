//! The keys that were used lately, so that a request costs no query.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::{Pak, PakDigest};

use crate::store::KeyHolder;

/// More keys than most fleets have; beyond that all are read again.
const KEYS_MAX: usize = 65_536;

/// Keys by short token.
#[derive(Debug, Default)]
pub(crate) struct Keyring(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    forgotten: u64,
    by_short: BTreeMap<String, Vec<(PakDigest, KeyHolder)>>,
}

impl Keyring {
    /// Whose key it is, if it was used lately.
    pub(crate) fn holder(&self, pak: &Pak) -> Option<KeyHolder> {
        matching(pak, self.lock().by_short.get(pak.short())?)
    }

    /// To be asked before the store is, and handed to [`Self::learn`].
    pub(crate) fn asked(&self) -> u64 {
        self.lock().forgotten
    }

    /// Remembers what the store knows under a key's short token; says whose key it is.
    pub(crate) fn learn(&self, pak: &Pak, known: Vec<(PakDigest, KeyHolder)>, asked: u64) -> Option<KeyHolder> {
        let holder = matching(pak, &known)?;
        let mut remembered = self.lock();
        if remembered.forgotten == asked {
            if remembered.by_short.len() >= KEYS_MAX {
                remembered.by_short.clear();
            }
            remembered.by_short.insert(pak.short().to_owned(), known);
        }
        Some(holder)
    }

    /// Which keys there are has changed.
    pub(crate) fn forget(&self) {
        let mut remembered = self.lock();
        remembered.forgotten += 1;
        remembered.by_short.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Nothing here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn matching(pak: &Pak, known: &[(PakDigest, KeyHolder)]) -> Option<KeyHolder> {
    known.iter().find(|(digest, _)| pak.matches(digest)).map(|(_, holder)| *holder)
}
