//! A transaction of PostgreSQL, or a connection outside of one for verbs that only read.
//!
//! Each answer of the server takes a while to come, so nobody waits for one that is not needed at once: the server carries
//! out what it is sent in order, and a transaction in which anything failed is not committed.

use std::error::Error;
use std::future::poll_fn;
use std::task::Poll;

use bytes::BytesMut;
use deadpool_postgres::{Client, GenericClient};
use futures_util::TryFutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use tokio_postgres::Statement;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::failed;
use crate::store::records::{Change, StoreError, Stored};
use crate::store::sql::shared::session::{Question, Row, Session, Value, around_rows};

/// Who listens hears that something changed; what it is they read.
pub(super) const CHANNEL: &str = "sindri_changes";

pub(super) struct PostgresSession<'c> {
    client: &'c Client,
    /// Statements whose answers nobody has waited for yet. The server carries them out in their order.
    sent: Vec<Sent<'c>>,
    changes: Vec<Change>,
}

type Sent<'c> = BoxFuture<'c, Result<(), tokio_postgres::Error>>;

/// A statement with many rows.
struct Each {
    statement: Statement,
    columns: Vec<Vec<Value>>,
}

impl Each {
    async fn run(self, client: &Client) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        let columns: Vec<&(dyn ToSql + Sync)> = self.columns.iter().map(|column| column as _).collect();
        client.query(&self.statement, &columns).await
    }
}

impl<'c> PostgresSession<'c> {
    /// For verbs that only read.
    pub(super) fn reading(client: &'c Client) -> Self {
        Self { client, sent: Vec::new(), changes: Vec::new() }
    }

    /// A transaction. Whoever does not end it must not use the connection again.
    pub(super) async fn begin(client: &'c Client) -> Result<Self, StoreError> {
        let mut session = Self::reading(client);
        session.send(Box::pin(client.batch_execute("BEGIN"))).await.map_err(|error| failed(&error))?;
        Ok(session)
    }

    /// Makes it durable, and tells the other brokers if it concerns them. Says what changed.
    pub(super) async fn commit(mut self) -> Result<Vec<Change>, StoreError> {
        if !self.changes.is_empty() {
            let client = self.client;
            let told = async move {
                let statement = client.prepare_cached("SELECT pg_notify($1, '')").await?;
                client.query(&statement, &[&CHANNEL]).await.map(drop)
            };
            self.send(Box::pin(told)).await.map_err(|error| failed(&error))?;
        }
        let committed = self.client.batch_execute("COMMIT").await;
        // If one of these failed, the server has taken everything back instead.
        self.settle().await?;
        committed.map_err(|error| failed(&error))?;
        Ok(self.changes)
    }

    /// Takes everything back.
    pub(super) async fn roll_back(self) -> Result<(), StoreError> {
        self.client.batch_execute("ROLLBACK").await.map_err(|error| failed(&error))
    }

    async fn rows(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.client.prepare_cached(&numbered(sql)).await?;
        let found = self.client.query(&statement, &references(values)).await?;
        found.iter().map(owned).collect()
    }

    /// The rows travel as one array for each column, and the statement is carried out once.
    async fn prepare_each(&mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Result<Each, tokio_postgres::Error> {
        let (before, kinds, after) = around_rows(sql);
        let arrays: Vec<String> = (1..).zip(&kinds).map(|(number, kind)| format!("${number}::{kind}[]")).collect();
        let sql = format!("{before}SELECT * FROM unnest({}){after}", arrays.join(", "));
        let mut columns: Vec<Vec<Value>> = kinds.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        Ok(Each { statement: self.client.prepare_cached(&sql).await?, columns })
    }

    /// Sends something and leaves its answer for later.
    async fn send(&mut self, mut asked: Sent<'c>) -> Result<(), tokio_postgres::Error> {
        // The first look at it sends it.
        if let Poll::Ready(answer) = poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await {
            return answer;
        }
        self.sent.push(asked);
        Ok(())
    }

    /// Waits for the answers to everything that was sent; fails if anything failed.
    async fn settle(&mut self) -> Result<(), StoreError> {
        for sent in std::mem::take(&mut self.sent) {
            sent.await.map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// The reason why a statement failed: perhaps that one which was sent before it did.
    async fn reason(&mut self, error: tokio_postgres::Error) -> StoreError {
        self.settle().await.err().unwrap_or_else(|| failed(&error))
    }

    async fn rows_together(&mut self, questions: Vec<Question>) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
        let client = self.client;
        let mut asking: Vec<BoxFuture<'_, Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>>> = Vec::new();
        for question in questions {
            match question {
                Question::Each(_, rows) if rows.is_empty() => asking.push(Box::pin(std::future::ready(Ok(Vec::new())))),
                Question::Each(sql, rows) => asking.push(Box::pin(self.prepare_each(sql, rows).await?.run(client))),
                Question::Once(sql, values) => {
                    let statement = client.prepare_cached(&numbered(sql)).await?;
                    asking.push(Box::pin(async move { client.query(&statement, &references(&values)).await }));
                }
            }
        }
        // Each is sent at the first look at it, which is in this order.
        let answers = try_join_all(asking).await?;
        answers.iter().map(|rows| rows.iter().map(owned).collect()).collect()
    }

    async fn send_each(&mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Result<(), tokio_postgres::Error> {
        let each = self.prepare_each(sql, rows).await?;
        self.send(Box::pin(each.run(self.client).map_ok(drop))).await
    }

    async fn changed(&mut self, sql: &'static str, values: &[Value]) -> Result<u64, tokio_postgres::Error> {
        let statement = self.client.prepare_cached(&numbered(sql)).await?;
        self.client.execute(&statement, &references(values)).await
    }
}

impl Session for PostgresSession<'_> {
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, Vec<Row>> {
        Box::pin(async move {
            match self.rows(sql, values).await {
                Ok(rows) => Ok(rows),
                Err(error) => Err(self.reason(error).await),
            }
        })
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, u64> {
        Box::pin(async move {
            match self.changed(sql, values).await {
                Ok(changed) => Ok(changed),
                Err(error) => Err(self.reason(error).await),
            }
        })
    }

    fn query_together<'a>(&'a mut self, questions: Vec<Question>) -> Stored<'a, Vec<Vec<Row>>> {
        Box::pin(async move {
            match self.rows_together(questions).await {
                Ok(rows) => Ok(rows),
                Err(error) => Err(self.reason(error).await),
            }
        })
    }

    fn execute_each<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Stored<'a, ()> {
        Box::pin(async move {
            match self.send_each(sql, rows).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.reason(error).await),
            }
        })
    }

    fn changes(&mut self) -> &mut Vec<Change> {
        &mut self.changes
    }
}

/// `?1` as PostgreSQL writes it. No statement of ours has a question mark anywhere else.
fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}

fn references(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn owned(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
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
