//! The observer of a store's changes, which is attached after the store was opened.

use std::sync::{Arc, OnceLock};

use crate::store::records::{ChangeObserver, StoreChange};

/// Place for the observer of a store's changes. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ObserverSlot(Arc<OnceLock<ChangeObserver>>);

impl ObserverSlot {
    /// Sets the observer. A store serves one broker: the first observer stays.
    pub(crate) fn set(&self, observer: ChangeObserver) {
        let _ = self.0.set(observer);
    }

    /// Passes committed changes to the observer, if there are any.
    pub(crate) fn notify(&self, changes: &[StoreChange]) {
        if let Some(observer) = self.0.get()
            && !changes.is_empty()
        {
            observer(changes);
        }
    }
}
