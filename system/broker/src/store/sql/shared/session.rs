//! One open transaction of either database, and helpers to run statements in it.
//!
//! The operations of the store are written once, in SQL that both databases understand, with parameters `?1`, `?2`, ….

use std::fmt::Display;
use std::future::ready;

use sindri_model::Sequence;

use super::values::{Column, Row, Value};
use crate::store::bundle_cipher::BundleCipher;
use crate::store::records::{StoreChange, StoreError, StoreFuture};

/// An open transaction.
pub(crate) trait Session: Send {
    /// Returns every row of a query.
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> StoreFuture<'a, Vec<Row>>;
    /// Executes a statement and returns the number of rows that it changed.
    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> StoreFuture<'a, u64>;
    /// Executes several queries in their order and returns the rows of each. A database server receives all of them
    /// before its first response is awaited.
    fn query_pipelined<'a>(&'a mut self, queries: Vec<PipelinedQuery>) -> StoreFuture<'a, Vec<Vec<Row>>>;
    /// Executes a statement for each row of a batch, written as in [`PipelinedQuery::Batch`]. With a database server
    /// the response may not be awaited here: if the statement fails, the transaction fails.
    fn execute_batch<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> StoreFuture<'a, ()>;
    /// Returns the changes of this transaction that invalidate what brokers cache. They are published at the commit.
    fn changes(&mut self) -> &mut Vec<StoreChange>;
    /// Returns the cipher of bundles, if there is one.
    fn bundle_cipher(&self) -> Option<&BundleCipher>;
    /// Overwrites content that is replaced from now on, as far as the database can: a plain text must not stay in its file.
    fn erase_replaced_content(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Announces, before it is inserted, a row of the table `events`, whose position is assigned before the commit.
    fn announce_event(&mut self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }
    /// Waits until every transaction has ended that has announced an event before this call.
    fn await_announced_events(&mut self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }
    /// Receives the value of the counter before and after this transaction has taken numbers, or the same value twice if
    /// it was only read. Fails if numbers above it were committed before: then the database was replaced.
    fn observe_counter(&mut self, _before: Sequence, _after: Sequence) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A query that is executed together with others.
pub(crate) enum PipelinedQuery {
    /// A query with parameters, as in [`Session::query`].
    Single(&'static str, Vec<Value>),
    /// A query for each row of a batch; without rows it is not sent. The statement contains the types of the batch's
    /// columns in braces: `WITH batch (a, b) AS ({BIGINT, TEXT}) …`.
    Batch(&'static str, Vec<Vec<Value>>),
}

/// Function that reads one row.
type RowReader<T> = fn(&mut Row) -> Result<T, StoreError>;

/// Returns every row of a query.
pub(crate) async fn fetch_all<T>(
    session: &mut dyn Session,
    sql: &'static str,
    values: &[Value],
    read: RowReader<T>,
) -> Result<Vec<T>, StoreError> {
    session.query(sql, values).await?.iter_mut().map(read).collect()
}

/// Returns the first row of a query, if there is one.
pub(crate) async fn fetch_one<T>(
    session: &mut dyn Session,
    sql: &'static str,
    values: &[Value],
    read: RowReader<T>,
) -> Result<Option<T>, StoreError> {
    session.query(sql, values).await?.first_mut().map(read).transpose()
}

/// Returns true if a query has a row.
pub(crate) async fn has_rows(
    session: &mut dyn Session,
    sql: &'static str,
    values: &[Value],
) -> Result<bool, StoreError> {
    Ok(!session.query(sql, values).await?.is_empty())
}

/// Executes a statement and returns the number of rows that it changed.
pub(crate) async fn execute(session: &mut dyn Session, sql: &'static str, values: &[Value]) -> Result<u64, StoreError> {
    session.execute(sql, values).await
}

/// Executes a statement for each row of a batch; see [`PipelinedQuery::Batch`].
pub(crate) async fn execute_batch(
    session: &mut dyn Session,
    sql: &'static str,
    rows: Vec<Vec<Value>>,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    session.execute_batch(sql, rows).await
}

/// Returns the rows of a query for each row of a batch; see [`PipelinedQuery::Batch`].
pub(crate) async fn fetch_batch<T>(
    session: &mut dyn Session,
    sql: &'static str,
    rows: Vec<Vec<Value>>,
    read: RowReader<T>,
) -> Result<Vec<T>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let found = session.query_pipelined(vec![PipelinedQuery::Batch(sql, rows)]).await?;
    read_all(found.into_iter().flatten().collect(), read)
}

/// Reads rows that were fetched before.
pub(crate) fn read_all<T>(mut rows: Vec<Row>, read: RowReader<T>) -> Result<Vec<T>, StoreError> {
    rows.iter_mut().map(read).collect()
}

/// Reads a row of one column.
pub(crate) fn single_column<T: Column>(row: &mut Row) -> Result<T, StoreError> {
    row.take()
}

/// Splits a statement with a batch: the text before the braces, the types of the columns, and the text after them.
pub(crate) fn split_batch(sql: &'static str) -> (&'static str, Vec<&'static str>, &'static str) {
    let (before, rest) = sql.split_once('{').expect("a batch statement contains braces");
    let (types, after) = rest.split_once('}').expect("a batch statement contains braces");
    (before, types.split(", ").collect(), after)
}

/// Converts an error into a failure of the store.
pub(crate) fn failed(error: impl Display) -> StoreError {
    StoreError::Failed(error.to_string())
}
