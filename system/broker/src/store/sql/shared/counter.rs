//! The one counter of the database.
//!
//! Sequences of revisions and versions of target states are numbers of this counter. Taking a number locks the counter
//! until the transaction ends, so transactions that take one run one after another.

use sindri_model::Sequence;

use super::session::{PipelinedQuery, Session, execute, failed, fetch_one, read_all, single_column};
use super::values::{Row, row, values};
use crate::store::records::StoreError;

const ADVANCE: &str = "UPDATE meta SET value = value + ?1 WHERE name = 'tick' RETURNING value";

/// Takes the next number.
pub(crate) async fn next_number(session: &mut dyn Session) -> Result<Sequence, StoreError> {
    let taken = session.query(ADVANCE, values![1]).await?;
    read_taken(session, taken, 1)
}

/// Takes the next `count` numbers, and returns them ascending.
pub(crate) async fn next_numbers(
    session: &mut dyn Session,
    count: usize,
) -> Result<impl Iterator<Item = Sequence> + use<>, StoreError> {
    let count = i64::try_from(count).map_err(failed)?;
    let taken = session.query(ADVANCE, values![count]).await?;
    let last = read_taken(session, taken, count)?;
    Ok((last.0 - count + 1..=last.0).map(Sequence))
}

/// Locks the counter without taking a number.
pub(crate) async fn lock(session: &mut dyn Session) -> Result<(), StoreError> {
    let locked = execute(session, "UPDATE meta SET value = value WHERE name = 'tick'", &[]).await?;
    if locked > 0 { Ok(()) } else { Err(missing_counter()) }
}

/// Query that takes `count` numbers; [`read_taken`] reads the last of them.
pub(crate) fn take_numbers(count: i64) -> PipelinedQuery {
    PipelinedQuery::Single(ADVANCE, row![count])
}

/// Reads the last of the numbers that [`take_numbers`] has taken.
pub(crate) fn read_taken(session: &mut dyn Session, rows: Vec<Row>, count: i64) -> Result<Sequence, StoreError> {
    let last: Sequence = read_all(rows, single_column)?.pop().ok_or_else(missing_counter)?;
    session.observe_counter(Sequence(last.0 - count), last)?;
    Ok(last)
}

/// Returns the last number that was taken, without locking the counter.
pub(crate) async fn last_number(session: &mut dyn Session) -> Result<Sequence, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = 'tick'";
    let last = fetch_one(session, sql, &[], single_column).await?.ok_or_else(missing_counter)?;
    session.observe_counter(last, last)?;
    Ok(last)
}

/// Writes the counter with its own value, and another value that changes: a full disk, a standby, and a transaction that
/// holds the counter prevent it. SQLite does not write a value that is the same.
pub(crate) async fn check_writable(session: &mut dyn Session) -> Result<(), StoreError> {
    lock(session).await?;
    let sql = "INSERT INTO facts (name, value) VALUES ('checked', '0')
               ON CONFLICT (name) DO UPDATE SET value = CASE WHEN facts.value = '0' THEN '1' ELSE '0' END";
    execute(session, sql, &[]).await.map(drop)
}

fn missing_counter() -> StoreError {
    failed("the table meta has no counter")
}
