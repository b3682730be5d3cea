//! Columns as the types of the domain, and SQLite's errors as the store's.
//!
//! Ids are text, so that a person can read the file; times are microseconds since 1970.

use std::error::Error;
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use sindri_model::Checksum;

use crate::store::{Noun, StoreError};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A column that holds the text of an id.
pub(super) fn id<T: FromStr<Err: Error + Send + Sync + 'static>>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| conversion(row, column, Box::new(error)))
}

/// A column that holds the text of an id, or nothing.
pub(super) fn id_or_none<T: FromStr<Err: Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<Option<T>> {
    match row.get::<_, Option<String>>(column)? {
        Some(_) => id(row, column).map(Some),
        None => Ok(None),
    }
}

/// A column that holds a time.
pub(super) fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(row.get(column)?).map_err(|error| conversion(row, column, Box::new(error)))
}

/// A column that holds a time, or nothing.
pub(super) fn time_or_none(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    match row.get::<_, Option<i64>>(column)? {
        Some(_) => time(row, column).map(Some),
        None => Ok(None),
    }
}

/// A column that holds a checksum. Not computed again: a text that no longer has it must be seen.
pub(super) fn checksum(row: &Row<'_>, column: &str) -> rusqlite::Result<Checksum> {
    let text: String = row.get(column)?;
    let read: Result<_, ValueError> = Checksum::deserialize(text.into_deserializer());
    read.map_err(|error| conversion(row, column, Box::new(error)))
}

fn conversion(row: &Row<'_>, column: &str, error: Box<dyn Error + Send + Sync>) -> rusqlite::Error {
    let index = row.as_ref().column_index(column).unwrap_or_default();
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, error)
}

/// Every row of a query.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The one row of a query, or nothing.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    Ok(connection.prepare_cached(sql)?.query_row(params, read).optional()?)
}

/// Whether a query has a row.
pub(super) fn any(connection: &Connection, sql: &str, params: impl Params) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached(sql)?.exists(params)?)
}

/// Carries a statement out; says how many rows it changed.
pub(super) fn change(connection: &Connection, sql: &str, params: impl Params) -> Result<usize, StoreError> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

/// Inserts a row that may be there already.
pub(super) fn insert(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    noun: Noun,
    name: impl ToString,
) -> Result<(), StoreError> {
    match connection.prepare_cached(sql)?.execute(params) {
        Ok(_) => Ok(()),
        Err(error) if is_duplicate(&error) => Err(StoreError::Duplicate { noun, name: name.to_string() }),
        Err(error) => Err(error.into()),
    }
}

/// The thing, or the error that names it.
pub(super) fn found<T>(row: Option<T>, noun: Noun, name: impl ToString) -> Result<T, StoreError> {
    row.ok_or_else(|| StoreError::NotFound { noun, name: name.to_string() })
}

/// What a request names in its body and what does not exist is a mistake in the request, not in its address.
pub(super) fn as_reference(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound { noun, name } => StoreError::MissingReference { noun, name },
        other => other,
    }
}

fn is_duplicate(error: &rusqlite::Error) -> bool {
    const UNIQUE: [i32; 2] = [rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE, rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY];
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
        && error.sqlite_error().is_some_and(|detail| UNIQUE.contains(&detail.extended_code))
}
