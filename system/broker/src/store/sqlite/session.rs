//! A transaction of SQLite. Every statement completes at once.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Statement, ToSql};

use crate::store::bundle_cipher::BundleCipher;
use crate::store::records::{StoreChange, StoreError, StoreFuture};
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::shared::session::{PipelinedQuery, Session, failed, split_batch};
use crate::store::sql::shared::values::{Row, Value};

pub(super) struct SqliteSession<'c> {
    /// Borrowed exclusively: one thread at a time may use a connection.
    connection: &'c mut Connection,
    pub(super) changes: Vec<StoreChange>,
    cipher: &'c CipherSlot,
}

impl<'c> SqliteSession<'c> {
    pub(super) fn new(connection: &'c mut Connection, cipher: &'c CipherSlot) -> Self {
        Self { connection, changes: Vec::new(), cipher }
    }

    /// Executes a statement that controls the transaction.
    pub(super) fn run(&self, sql: &'static str) -> Result<(), StoreError> {
        let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(failed)
    }

    fn prepare(&self, sql: &'static str, values: &[Value]) -> rusqlite::Result<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        Ok(statement)
    }

    fn fetch(&self, sql: &'static str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
        let mut found = Vec::new();
        append_rows(&mut *self.prepare(sql, values)?, &mut found)?;
        Ok(found)
    }

    fn run_batch(&self, sql: &'static str, rows: &[Vec<Value>]) -> rusqlite::Result<Vec<Row>> {
        let (before, types, after) = split_batch(sql);
        let numbers: Vec<String> = (1..=types.len()).map(|number| format!("?{number}")).collect();
        let sql = format!("{before}VALUES ({}){after}", numbers.join(", "));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for row in rows {
            bind(&mut statement, row)?;
            append_rows(&mut statement, &mut found)?;
        }
        Ok(found)
    }
}

impl Session for SqliteSession<'_> {
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> StoreFuture<'a, Vec<Row>> {
        let rows = self.fetch(sql, values).map_err(failed);
        Box::pin(std::future::ready(rows))
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> StoreFuture<'a, u64> {
        let changed = self.prepare(sql, values).and_then(|mut statement| statement.raw_execute());
        Box::pin(std::future::ready(changed.map(|rows| rows as u64).map_err(failed)))
    }

    fn query_pipelined<'a>(&'a mut self, queries: Vec<PipelinedQuery>) -> StoreFuture<'a, Vec<Vec<Row>>> {
        let fetch = |query| match query {
            PipelinedQuery::Single(sql, values) => self.fetch(sql, &values),
            PipelinedQuery::Batch(sql, rows) => self.run_batch(sql, &rows),
        };
        let found: rusqlite::Result<_> = queries.into_iter().map(fetch).collect();
        Box::pin(std::future::ready(found.map_err(failed)))
    }

    fn execute_batch<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> StoreFuture<'a, ()> {
        let done = self.run_batch(sql, &rows).map(drop).map_err(failed);
        Box::pin(std::future::ready(done))
    }

    fn changes(&mut self) -> &mut Vec<StoreChange> {
        &mut self.changes
    }

    fn bundle_cipher(&self) -> Option<&BundleCipher> {
        self.cipher.get()
    }

    fn erase_replaced_content(&mut self) -> Result<(), StoreError> {
        self.connection.pragma_update(None, "secure_delete", true).map_err(failed)
    }
}

fn bind(statement: &mut Statement<'_>, values: &[Value]) -> rusqlite::Result<()> {
    for (index, value) in (1..).zip(values) {
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

/// Executes a statement whose parameters are bound, and appends the rows that it returns.
fn append_rows(statement: &mut Statement<'_>, found: &mut Vec<Row>) -> rusqlite::Result<()> {
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let values: rusqlite::Result<_> = (0..columns).map(|column| Ok(to_value(row.get_ref(column)?))).collect();
        found.push(Row::new(values?));
    }
    Ok(())
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Copies a value. A text that is not UTF-8 becomes a blob: reading it as a text then fails with an error that says so.
fn to_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Text(number.to_string()),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(text.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}
