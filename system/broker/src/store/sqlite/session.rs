//! A transaction of SQLite. Every call is made and answered at once.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Statement, ToSql};

use super::worker::Stopped;
use crate::store::records::{Change, StoreError, Stored};
use crate::store::sql::shared::session::{Question, Row, Session, Value, around_rows};

pub(super) struct SqliteSession<'c> {
    /// Held alone: a connection may be used by one thread at a time.
    connection: &'c mut Connection,
    pub(super) changes: Vec<Change>,
}

impl<'c> SqliteSession<'c> {
    pub(super) fn new(connection: &'c mut Connection) -> Self {
        Self { connection, changes: Vec::new() }
    }

    /// A statement about the transaction itself.
    pub(super) fn run(&self, sql: &'static str) -> Result<(), Stopped> {
        let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| Stopped(error.to_string()))
    }

    fn bound(&self, sql: &'static str, values: &[Value]) -> rusqlite::Result<CachedStatement<'_>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        Ok(statement)
    }

    fn rows(&self, sql: &'static str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
        let mut found = Vec::new();
        collect(&mut *self.bound(sql, values)?, &mut found)?;
        Ok(found)
    }

    fn rows_of_each(&self, sql: &'static str, rows: &[Vec<Value>]) -> rusqlite::Result<Vec<Row>> {
        let (before, kinds, after) = around_rows(sql);
        let numbers: Vec<String> = (1..=kinds.len()).map(|number| format!("?{number}")).collect();
        let sql = format!("{before}VALUES ({}){after}", numbers.join(", "));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for row in rows {
            bind(&mut statement, row)?;
            collect(&mut statement, &mut found)?;
        }
        Ok(found)
    }
}

impl Session for SqliteSession<'_> {
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, Vec<Row>> {
        let rows = self.rows(sql, values).map_err(failure);
        Box::pin(std::future::ready(rows))
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, u64> {
        let changed = self.bound(sql, values).and_then(|mut statement| statement.raw_execute());
        Box::pin(std::future::ready(changed.map(|rows| rows as u64).map_err(failure)))
    }

    fn query_together<'a>(&'a mut self, questions: Vec<Question>) -> Stored<'a, Vec<Vec<Row>>> {
        let answer = |question| match question {
            Question::Once(sql, values) => self.rows(sql, &values),
            Question::Each(sql, rows) => self.rows_of_each(sql, &rows),
        };
        let found: rusqlite::Result<_> = questions.into_iter().map(answer).collect();
        Box::pin(std::future::ready(found.map_err(failure)))
    }

    fn execute_each<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Stored<'a, ()> {
        let done = self.rows_of_each(sql, &rows).map(drop).map_err(failure);
        Box::pin(std::future::ready(done))
    }

    fn changes(&mut self) -> &mut Vec<Change> {
        &mut self.changes
    }
}

fn bind(statement: &mut Statement<'_>, values: &[Value]) -> rusqlite::Result<()> {
    for (index, value) in (1..).zip(values) {
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

/// Carries out what is bound; adds the rows that it returns.
fn collect(statement: &mut Statement<'_>, found: &mut Vec<Row>) -> rusqlite::Result<()> {
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let values: rusqlite::Result<_> = (0..columns).map(|column| Ok(owned(row.get_ref(column)?))).collect();
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

/// A column that is not UTF-8 is a blob: reading it as a text then fails, and says so.
fn owned(value: ValueRef<'_>) -> Value {
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

fn failure(error: rusqlite::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}
