//! The cipher of a store's bundles, which is attached after the store was opened.

use std::sync::{Arc, OnceLock};

use crate::store::bundle_cipher::BundleCipher;

/// Place for the cipher of a store. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct CipherSlot(Arc<OnceLock<BundleCipher>>);

impl CipherSlot {
    /// Sets the cipher. A store serves one broker: the first cipher stays.
    pub(crate) fn set(&self, cipher: BundleCipher) {
        let _ = self.0.set(cipher);
    }

    /// Returns the cipher, if there is one.
    pub(crate) fn get(&self) -> Option<&BundleCipher> {
        self.0.get()
    }
}
