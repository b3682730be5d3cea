//! One transaction of either database, and the few values that travel into it and out of it.
//!
//! The verbs of the store are written once, in SQL that both databases understand: parameters are `?1`, `?2`, …;
//! every column is an integer, a text or a blob; ids are text, so that a person can read the tables; times are
//! microseconds since 1970; truth is 0 or 1.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use sindri_model::wire::{AgentStatus, ApprovalState, EventStatus, HealthStatus};
use sindri_model::{
    AgentId, ApprovalId, AuditId, Checksum, DeliveryId, EventId, GeneratorId, HealthId, LinkId, PakId, RevisionId,
    Sequence, StackId, WebhookId,
};

use crate::store::records::{Change, StoreError, Stored};

/// An open transaction.
pub(crate) trait Session: Send {
    /// Every row of a query.
    fn query<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, Vec<Row>>;
    /// Carries a statement out; says how many rows it changed.
    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value]) -> Stored<'a, u64>;
    /// Every row of each of some questions, which are carried out in their order. Where a database answers later, none waits
    /// for the answer to another.
    fn query_together<'a>(&'a mut self, questions: Vec<Question>) -> Stored<'a, Vec<Vec<Row>>>;
    /// Carries a statement out for each of some rows, which stand in it as in [`Question::Each`]. Where a database answers later, nobody waits for that: if it
    /// fails, the transaction does.
    fn execute_each<'a>(&'a mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Stored<'a, ()>;
    /// What the transaction changes that brokers remember; they hear of it when it is committed.
    fn changes(&mut self) -> &mut Vec<Change>;
}

/// A query that is asked together with others.
pub(crate) enum Question {
    /// As in [`Session::query`].
    Once(&'static str, Vec<Value>),
    /// For each of some rows; without rows nobody is asked. In the statement these are a part in braces that names the kinds
    /// of their columns: `WITH batch (a, b) AS ({BIGINT, TEXT}) …`.
    Each(&'static str, Vec<Vec<Value>>),
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

/// The values for a statement, each as its column keeps it.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::sql::shared::session::Value::from($value)),*][..] };
}
pub(crate) use values;

/// The values of one of several rows.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::sql::shared::session::Value::from($value)),*] };
}
pub(crate) use row;

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Integer(i64::from(truth))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::Integer(time.as_microsecond())
    }
}

impl From<Sequence> for Value {
    fn from(sequence: Sequence) -> Self {
        Self::Integer(sequence.0)
    }
}

impl From<&Checksum> for Value {
    fn from(checksum: &Checksum) -> Self {
        Self::Text(checksum.as_str().to_owned())
    }
}

impl<T> From<Option<T>> for Value
where
    Value: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

/// What a column can be read as.
pub(crate) trait Column: Sized {
    fn read(value: Value) -> Result<Self, String>;
}

macro_rules! as_text {
    ($($name:ty),* $(,)?) => {$(
        impl From<$name> for Value {
            fn from(id: $name) -> Self {
                Self::Text(id.to_string())
            }
        }

        impl Column for $name {
            fn read(value: Value) -> Result<Self, String> {
                parsed(value)
            }
        }
    )*};
}

as_text!(AgentId, ApprovalId, AuditId, DeliveryId, EventId, GeneratorId, HealthId, LinkId, PakId, RevisionId, StackId);
as_text!(WebhookId, ApprovalState, EventStatus, HealthStatus);

fn parsed<T: FromStr<Err: Error + 'static>>(value: Value) -> Result<T, String> {
    String::read(value)?.parse().map_err(|error: T::Err| error.to_string())
}

impl Column for i64 {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Integer(number) => Ok(number),
            other => Err(unexpected("an integer", &other)),
        }
    }
}

impl Column for bool {
    fn read(value: Value) -> Result<Self, String> {
        i64::read(value).map(|number| number != 0)
    }
}

impl Column for String {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text),
            other => Err(unexpected("a text", &other)),
        }
    }
}

impl Column for Vec<u8> {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Blob(bytes) => Ok(bytes),
            other => Err(unexpected("a blob", &other)),
        }
    }
}

impl Column for Timestamp {
    fn read(value: Value) -> Result<Self, String> {
        Timestamp::from_microsecond(i64::read(value)?).map_err(|error| error.to_string())
    }
}

impl Column for Sequence {
    fn read(value: Value) -> Result<Self, String> {
        i64::read(value).map(Sequence)
    }
}

/// Not computed again: a text that no longer has its checksum must be seen.
impl Column for Checksum {
    fn read(value: Value) -> Result<Self, String> {
        let text = String::read(value)?;
        let read: Result<_, ValueError> = Checksum::deserialize(text.into_deserializer());
        read.map_err(|error| error.to_string())
    }
}

impl Column for AgentStatus {
    fn read(value: Value) -> Result<Self, String> {
        bool::read(value).map(|active| if active { Self::Active } else { Self::Inactive })
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(None),
            other => T::read(other).map(Some),
        }
    }
}

/// Names the kind only: what a column holds may be secret.
fn unexpected(wanted: &str, got: &Value) -> String {
    let got = match got {
        Value::Null => "nothing",
        Value::Integer(_) => "an integer",
        Value::Text(_) => "a text",
        Value::Blob(_) => "a blob",
    };
    format!("a column holds {got} and should hold {wanted}")
}

/// A row, read from its first column to its last.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    /// The next column.
    pub(crate) fn take<T: Column>(&mut self) -> Result<T, StoreError> {
        let value = self.0.next().ok_or_else(|| StoreError::Failed("a row has too few columns".to_owned()))?;
        T::read(value).map_err(StoreError::Failed)
    }

    /// The next column, which holds JSON.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        let text: String = self.take()?;
        serde_json::from_str(&text).map_err(|error| StoreError::Failed(error.to_string()))
    }

    /// The next column, which holds JSON or nothing.
    pub(crate) fn json_or_none<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.take()?;
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|error| StoreError::Failed(error.to_string()))
    }
}

/// How a row becomes a thing.
type Reader<T> = fn(&mut Row) -> Result<T, StoreError>;

/// Every row of a query.
pub(crate) async fn all<T>(
    session: &mut dyn Session,
    sql: &'static str,
    values: &[Value],
    read: Reader<T>,
) -> Result<Vec<T>, StoreError> {
    session.query(sql, values).await?.iter_mut().map(read).collect()
}

/// The one row of a query, or nothing.
pub(crate) async fn one<T>(
    session: &mut dyn Session,
    sql: &'static str,
    values: &[Value],
    read: Reader<T>,
) -> Result<Option<T>, StoreError> {
    session.query(sql, values).await?.first_mut().map(read).transpose()
}

/// Whether a query has a row.
pub(crate) async fn any(session: &mut dyn Session, sql: &'static str, values: &[Value]) -> Result<bool, StoreError> {
    Ok(!session.query(sql, values).await?.is_empty())
}

/// Everything that was found, read.
pub(crate) fn read_all<T>(mut rows: Vec<Row>, read: Reader<T>) -> Result<Vec<T>, StoreError> {
    rows.iter_mut().map(read).collect()
}

/// Carries a statement out for each of some rows.
pub(crate) async fn change_each(
    session: &mut dyn Session,
    sql: &'static str,
    rows: Vec<Vec<Value>>,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    session.execute_each(sql, rows).await
}

/// A statement for each of some rows: what is before the rows, the kinds of their columns, and what is after them.
pub(crate) fn around_rows(sql: &'static str) -> (&'static str, Vec<&'static str>, &'static str) {
    let (before, rest) = sql.split_once('{').expect("a statement for each row has its rows in braces");
    let (kinds, after) = rest.split_once('}').expect("a statement for each row has its rows in braces");
    (before, kinds.split(", ").collect(), after)
}

/// Carries a statement out; says how many rows it changed.
pub(crate) async fn change(session: &mut dyn Session, sql: &'static str, values: &[Value]) -> Result<u64, StoreError> {
    session.execute(sql, values).await
}

/// The first column of a row.
pub(crate) fn only<T: Column>(row: &mut Row) -> Result<T, StoreError> {
    row.take()
}

/// JSON as a column keeps it.
pub(crate) fn json_text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("what is stored as JSON has text keys and no failing parts")
}

/// A failure that names what failed.
pub(crate) fn failed(error: impl Display) -> StoreError {
    StoreError::Failed(error.to_string())
}
