//! Errors for rows that are missing or exist already.

use crate::store::records::{Noun, StoreError};

/// The thing, or the error that names it.
pub(crate) fn found<T>(thing: Option<T>, noun: Noun, name: impl ToString) -> Result<T, StoreError> {
    thing.ok_or_else(|| StoreError::NotFound { noun, name: name.to_string() })
}

/// What a statement should have made, and made only if it was not there yet.
pub(crate) fn made(rows: u64, noun: Noun, name: impl ToString) -> Result<(), StoreError> {
    if rows > 0 { Ok(()) } else { Err(StoreError::Duplicate { noun, name: name.to_string() }) }
}

/// What a request names in its body and what does not exist is a mistake in the request, not in its address.
pub(crate) fn as_reference(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound { noun, name } => StoreError::MissingReference { noun, name },
        other => other,
    }
}
