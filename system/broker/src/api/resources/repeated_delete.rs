//! Deletion of what is deleted already, which succeeds: clients repeat a request whose response they did not receive.

use crate::store::{RecordKind, StoreError};

/// Returns success if the record that was to be deleted does not exist. Another missing record stays an error.
pub(crate) fn succeed_without(deleted: RecordKind, result: Result<(), StoreError>) -> Result<(), StoreError> {
    match result {
        Err(StoreError::NotFound { kind, .. }) if kind == deleted => Ok(()),
        other => other,
    }
}
