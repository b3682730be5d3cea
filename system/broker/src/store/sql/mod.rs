//! The verbs, once for both databases: a file per subject.
//!
//! Every verb that changes what is wanted of some agent first takes the next number of the one counter ([`epoch::tick`]),
//! and so waits for every other that does: such changes happen one after another, and their numbers become visible in
//! their order.

pub(super) mod agents;
mod announce;
pub(super) mod approvals;
pub(super) mod audit;
pub(super) mod database;
pub(super) mod deliveries;
pub(super) mod epoch;
pub(super) mod events;
pub(super) mod fleet;
pub(super) mod generators;
pub(super) mod health;
pub(super) mod keys;
pub(super) mod labels;
mod matching;
pub(super) mod offline;
mod once;
pub(super) mod outcomes;
pub(super) mod policies;
pub(super) mod revisions;
pub(super) mod session;
pub(super) mod stacks;
pub(super) mod status;
pub(super) mod submissions;
mod succession;
pub(super) mod target_state;
pub(super) mod targets;
pub(super) mod webhooks;

use super::{Noun, StoreError};

/// The thing, or the error that names it.
fn found<T>(thing: Option<T>, noun: Noun, name: impl ToString) -> Result<T, StoreError> {
    thing.ok_or_else(|| StoreError::NotFound { noun, name: name.to_string() })
}

/// What a statement should have made, and made only if it was not there yet.
fn made(rows: u64, noun: Noun, name: impl ToString) -> Result<(), StoreError> {
    if rows > 0 { Ok(()) } else { Err(StoreError::Duplicate { noun, name: name.to_string() }) }
}

/// What a request names in its body and what does not exist is a mistake in the request, not in its address.
fn as_reference(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound { noun, name } => StoreError::MissingReference { noun, name },
        other => other,
    }
}
