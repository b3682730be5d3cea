//! The one counter of the database.
//!
//! Sequences of revisions and versions of target states are numbers of this counter. Taking a number locks the counter
//! until the transaction ends, so transactions that take one run one after another.

use sindri_model::Sequence;

use super::session::{PipelinedQuery, Session, failed, fetch_one, read_all, single_column};
use super::values::{Row, row, values};
use crate::store::records::StoreError;

const ADVANCE: &str = "UPDATE meta SET value = value + ?1 WHERE name = 'tick' RETURNING value";

/// Takes the next number.
pub(crate) async fn next_number(session: &mut dyn Session) -> Result<Sequence, StoreError> {
    fetch_one(session, ADVANCE, values![1], single_column).await?.ok_or_else(missing_counter)
}

/// Query that takes `count` numbers; [`read_last_number`] reads the last of them.
pub(crate) fn take_numbers(count: i64) -> PipelinedQuery {
    PipelinedQuery::Single(ADVANCE, row![count])
}

/// Reads the last of the numbers that [`take_numbers`] has taken.
pub(crate) fn read_last_number(rows: Vec<Row>) -> Result<Sequence, StoreError> {
    read_all(rows, single_column)?.pop().ok_or_else(missing_counter)
}

/// Returns the last number that was taken, without locking the counter.
pub(crate) async fn last_number(session: &mut dyn Session) -> Result<Sequence, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = 'tick'";
    fetch_one(session, sql, &[], single_column).await?.ok_or_else(missing_counter)
}

fn missing_counter() -> StoreError {
    failed("the table meta has no counter")
}
