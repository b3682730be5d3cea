//! Errors for records that are missing or exist already.

use crate::store::records::{RecordKind, StoreError};

/// Returns the record, or an error that names the missing one.
pub(crate) fn require<T>(record: Option<T>, kind: RecordKind, name: impl ToString) -> Result<T, StoreError> {
    record.ok_or_else(|| StoreError::NotFound { kind, name: name.to_string() })
}

/// Fails with [`StoreError::NotFound`] unless the condition holds.
pub(crate) fn require_that(exists: bool, kind: RecordKind, name: impl ToString) -> Result<(), StoreError> {
    require(exists.then_some(()), kind, name)
}

/// Fails with [`StoreError::AlreadyExists`] if an `INSERT … ON CONFLICT DO NOTHING` has inserted no row.
pub(crate) fn require_inserted(rows: u64, kind: RecordKind, name: impl ToString) -> Result<(), StoreError> {
    if rows > 0 { Ok(()) } else { Err(StoreError::AlreadyExists { kind, name: name.to_string() }) }
}

/// Turns a missing record into a missing reference: it was named in the body of the request, not in its path.
pub(crate) fn as_missing_reference(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound { kind, name } => StoreError::MissingReference { kind, name },
        other => other,
    }
}
