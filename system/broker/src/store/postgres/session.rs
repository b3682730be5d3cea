//! A transaction of PostgreSQL, or a connection without one for operations that only read.
//!
//! Each response of the server costs a round trip, so a response that is not needed at once is not awaited: the server
//! executes statements in the order in which it receives them, and does not commit a transaction in which one failed.

use std::error::Error;
use std::future::poll_fn;
use std::task::Poll;

use bytes::BytesMut;
use deadpool_postgres::{Client, GenericClient};
use futures_util::TryFutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use sindri_model::Sequence;
use tokio_postgres::Statement;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::error::{commit_error, to_store_error};
use super::origin::Origin;
use crate::store::bundle_cipher::BundleCipher;
use crate::store::records::{StoreChange, StoreError, StoreFuture};
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::Access;
use crate::store::sql::shared::session::{PipelinedQuery, Session, split_batch};
use crate::store::sql::shared::values::{Row, Value};

/// Channel of the notifications that a broker has committed a change.
pub(super) const CHANNEL: &str = "sindri_changes";

/// Locks that order the readers of events after their writers; the key is the table. Writers share the lock until their
/// transaction ends. A reader, which is not in a transaction, holds it for its one statement only.
const ANNOUNCE_EVENT: &str = "SELECT pg_advisory_xact_lock_shared('events'::regclass::oid::bigint)";
const AWAIT_EVENTS: &str = "SELECT pg_advisory_xact_lock('events'::regclass::oid::bigint)";

pub(super) struct PostgresSession<'c> {
    client: &'c Client,
    /// Statements that were sent and whose responses are not awaited yet.
    sent: Vec<SentStatement<'c>>,
    changes: Vec<StoreChange>,
    origin: &'c Origin,
    cipher: &'c CipherSlot,
    access: Access,
    /// Number of the counter that was committed before this session began.
    seen: Sequence,
    /// Last number of the counter that this session has read or taken.
    counter: Option<Sequence>,
}

type SentStatement<'c> = BoxFuture<'c, Result<(), tokio_postgres::Error>>;

/// A prepared statement with a batch, as one array per column.
struct BatchStatement {
    statement: Statement,
    columns: Vec<Vec<Value>>,
}

impl BatchStatement {
    async fn run(self, client: &Client) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        let columns: Vec<&(dyn ToSql + Sync)> = self.columns.iter().map(|column| column as _).collect();
        client.query(&self.statement, &columns).await
    }
}

impl<'c> PostgresSession<'c> {
    /// Session without a transaction, for operations that only read.
    pub(super) fn without_transaction(
        client: &'c Client,
        origin: &'c Origin,
        cipher: &'c CipherSlot,
        access: Access,
    ) -> Self {
        let seen = origin.seen();
        Self { client, sent: Vec::new(), changes: Vec::new(), origin, cipher, access, seen, counter: None }
    }

    /// Begins a transaction. If it is neither committed nor rolled back, the connection must not be used again.
    pub(super) async fn begin(
        client: &'c Client,
        origin: &'c Origin,
        cipher: &'c CipherSlot,
        access: Access,
    ) -> Result<Self, StoreError> {
        let mut session = Self::without_transaction(client, origin, cipher, access);
        session.send(Box::pin(client.batch_execute("BEGIN"))).await.map_err(|error| to_store_error(&error))?;
        Ok(session)
    }

    /// Commits the transaction, notifies other brokers if it changed what they cache, and returns those changes.
    pub(super) async fn commit(mut self) -> Result<Vec<StoreChange>, StoreError> {
        if !self.changes.is_empty()
            && let Err(error) = self.send_notification().await
        {
            return Err(self.failure_reason(error).await);
        }
        // First, because of a lost connection: then the transaction may be durable.
        let committed = self.client.batch_execute("COMMIT").await;
        committed.map_err(|error| commit_error(&error))?;
        // If one of these statements failed, the server has rolled back instead.
        self.await_sent().await?;
        if let Some(counter) = self.counter {
            self.origin.record_committed(counter);
        }
        Ok(self.changes)
    }

    async fn send_notification(&mut self) -> Result<(), tokio_postgres::Error> {
        let client = self.client;
        // Prepared before it is sent: otherwise it would follow the COMMIT.
        let statement = client.prepare_cached("SELECT pg_notify($1, '')").await?;
        self.send(Box::pin(async move { client.query(&statement, &[&CHANNEL]).await.map(drop) })).await
    }

    /// Rolls the transaction back.
    pub(super) async fn roll_back(self) -> Result<(), StoreError> {
        self.client.batch_execute("ROLLBACK").await.map_err(|error| to_store_error(&error))
    }

    async fn fetch(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.client.prepare_cached(&to_postgres(sql)).await?;
        let found = self.client.query(&statement, &references(values)).await?;
        found.iter().map(to_row).collect()
    }

    /// Prepares a statement that receives a batch as one array per column and is executed once.
    async fn prepare_batch(
        &mut self,
        sql: &'static str,
        rows: Vec<Vec<Value>>,
    ) -> Result<BatchStatement, tokio_postgres::Error> {
        let (before, types, after) = split_batch(sql);
        let arrays: Vec<String> = (1..).zip(&types).map(|(number, name)| format!("${number}::{name}[]")).collect();
        let sql = format!("{before}SELECT * FROM unnest({}){after}", arrays.join(", "));
        let mut columns: Vec<Vec<Value>> = types.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        Ok(BatchStatement { statement: self.client.prepare_cached(&sql).await?, columns })
    }

    /// Sends a statement without awaiting its response.
    async fn send(&mut self, mut statement: SentStatement<'c>) -> Result<(), tokio_postgres::Error> {
        // The first poll sends the statement.
        if let Poll::Ready(response) = poll_fn(|context| Poll::Ready(statement.as_mut().poll(context))).await {
            return response;
        }
        self.sent.push(statement);
        Ok(())
    }

    /// Awaits the responses to all sent statements; fails if one of them failed.
    async fn await_sent(&mut self) -> Result<(), StoreError> {
        for sent in std::mem::take(&mut self.sent) {
            sent.await.map_err(|error| to_store_error(&error))?;
        }
        Ok(())
    }

    /// Returns the reason for which a statement failed: possibly the failure of one that was sent before it.
    async fn failure_reason(&mut self, error: tokio_postgres::Error) -> StoreError {
        self.await_sent().await.err().unwrap_or_else(|| to_store_error(&error))
    }

    async fn fetch_pipelined(&mut self, queries: Vec<PipelinedQuery>) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
        let client = self.client;
        let mut running: Vec<BoxFuture<'_, Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>>> = Vec::new();
        for query in queries {
            match query {
                PipelinedQuery::Batch(_, rows) if rows.is_empty() => {
                    running.push(Box::pin(std::future::ready(Ok(Vec::new()))))
                }
                PipelinedQuery::Batch(sql, rows) => {
                    running.push(Box::pin(self.prepare_batch(sql, rows).await?.run(client)))
                }
                PipelinedQuery::Single(sql, values) => {
                    let statement = client.prepare_cached(&to_postgres(sql)).await?;
                    running.push(Box::pin(async move { client.query(&statement, &references(&values)).await }));
                }
            }
        }
        // The first poll sends a query, and the first polls happen in this order.
        let responses = try_join_all(running).await?;
        responses.iter().map(|rows| rows.iter().map(to_row).collect()).collect()
    }

    async fn send_batch(&mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Result<(), tokio_postgres::Error> {
        let batch = self.prepare_batch(sql, rows).await?;
        self.send(Box::pin(batch.run(self.client).map_ok(drop))).await
    }

    async fn send_announcement(&mut self) -> Result<(), tokio_postgres::Error> {
        let client = self.client;
        let statement = client.prepare_cached(ANNOUNCE_EVENT).await?;
        self.send(Box::pin(async move { client.query(&statement, &[]).await.map(drop) })).await
    }

    async fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<u64, tokio_postgres::Error> {
        let statement = self.client.prepare_cached(&to_postgres(sql)).await?;
        self.client.execute(&statement, &references(values)).await
    }
}

impl Session for PostgresSession<'_> {
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> StoreFuture<'a, Vec<Row>> {
        Box::pin(async move {
            match self.fetch(sql, values).await {
                Ok(rows) => Ok(rows),
                Err(error) => Err(self.failure_reason(error).await),
            }
        })
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            match self.run(sql, values).await {
                Ok(changed) => Ok(changed),
                Err(error) => Err(self.failure_reason(error).await),
            }
        })
    }

    fn query_pipelined<'a>(&'a mut self, queries: Vec<PipelinedQuery>) -> StoreFuture<'a, Vec<Vec<Row>>> {
        Box::pin(async move {
            match self.fetch_pipelined(queries).await {
                Ok(rows) => Ok(rows),
                Err(error) => Err(self.failure_reason(error).await),
            }
        })
    }

    fn execute_batch<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            match self.send_batch(sql, rows).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failure_reason(error).await),
            }
        })
    }

    fn changes(&mut self) -> &mut Vec<StoreChange> {
        &mut self.changes
    }

    fn bundle_cipher(&self) -> Option<&BundleCipher> {
        self.cipher.get()
    }

    fn announce_event(&mut self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            match self.send_announcement().await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.failure_reason(error).await),
            }
        })
    }

    fn await_announced_events(&mut self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.execute(AWAIT_EVENTS, &[]).await.map(drop) })
    }

    fn observe_counter(&mut self, before: Sequence, after: Sequence) -> Result<(), StoreError> {
        match self.access {
            Access::Read => {
                self.origin.check_counter(before, self.seen)?;
                self.origin.record_committed(after);
            }
            Access::Write => self.origin.check_counter(before, self.seen)?,
            Access::Recover => {}
        }
        self.counter = Some(after);
        Ok(())
    }
}

/// Replaces parameters `?1` by `$1`. No statement of the store has a question mark elsewhere.
fn to_postgres(sql: &str) -> String {
    sql.replace('?', "$")
}

fn references(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn to_row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    (0..row.len()).map(|column| row.try_get(column)).collect::<Result<_, _>>().map(Row::new)
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Value::Integer(number) => number.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match *kind {
            Type::INT8 => i64::from_sql(kind, raw).map(Value::Integer),
            Type::INT4 => i32::from_sql(kind, raw).map(|number| Value::Integer(number.into())),
            Type::BYTEA => Vec::from_sql(kind, raw).map(Value::Blob),
            _ => String::from_sql(kind, raw).map(Value::Text),
        }
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Value::Null)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::INT4 | Type::BYTEA | Type::TEXT | Type::VARCHAR)
    }
}
