//! A transaction of PostgreSQL, or a connection outside of one for verbs that only read.

use std::error::Error;

use bytes::BytesMut;
use deadpool_postgres::GenericClient;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::failed;
use crate::store::sql::session::{Row, Session, Value, around_rows};
use crate::store::{Change, StoreError, Stored};

/// Who listens hears that something changed; what it is they read.
pub(super) const CHANNEL: &str = "sindri_changes";

pub(super) struct PostgresSession<'c, C> {
    client: &'c C,
    pub(super) changes: Vec<Change>,
}

impl<'c, C: GenericClient> PostgresSession<'c, C> {
    pub(super) fn new(client: &'c C) -> Self {
        Self { client, changes: Vec::new() }
    }

    /// Tells the other brokers, if there is something to tell; they hear it when the transaction is committed.
    pub(super) async fn notify(&self) -> Result<(), StoreError> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let statement = self.client.prepare_cached("SELECT pg_notify($1, '')").await.map_err(|error| failed(&error))?;
        self.client.query(&statement, &[&CHANNEL]).await.map(drop).map_err(|error| failed(&error))
    }

    async fn rows(&self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.client.prepare_cached(&numbered(sql)).await?;
        let found = self.client.query(&statement, &references(values)).await?;
        found.iter().map(owned).collect()
    }

    /// The rows travel as one array for each column, and the statement is carried out once.
    async fn rows_of_each(&self, sql: &'static str, rows: Vec<Vec<Value>>) -> Result<Vec<Row>, tokio_postgres::Error> {
        let (before, kinds, after) = around_rows(sql);
        let arrays: Vec<String> = (1..).zip(&kinds).map(|(number, kind)| format!("${number}::{kind}[]")).collect();
        let sql = format!("{before}SELECT * FROM unnest({}){after}", arrays.join(", "));
        let mut columns: Vec<Vec<Value>> = kinds.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        let statement = self.client.prepare_cached(&sql).await?;
        let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
        self.client.query(&statement, &columns).await?.iter().map(owned).collect()
    }

    async fn changed(&self, sql: &'static str, values: &[Value]) -> Result<u64, tokio_postgres::Error> {
        let statement = self.client.prepare_cached(&numbered(sql)).await?;
        self.client.execute(&statement, &references(values)).await
    }
}

impl<C: GenericClient + Sync> Session for PostgresSession<'_, C> {
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, Vec<Row>> {
        Box::pin(async move { self.rows(sql, values).await.map_err(|error| failed(&error)) })
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, u64> {
        Box::pin(async move { self.changed(sql, values).await.map_err(|error| failed(&error)) })
    }

    fn each<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Stored<'a, Vec<Row>> {
        Box::pin(async move { self.rows_of_each(sql, rows).await.map_err(|error| failed(&error)) })
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
