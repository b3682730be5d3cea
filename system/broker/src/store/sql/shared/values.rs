//! Values of columns, and the rows that consist of them.
//!
//! Every column is an integer, a text or a blob. Ids are text, so that a person can read the tables; times are
//! microseconds since 1970; booleans are 0 or 1.

use std::error::Error;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use sindri_model::wire::{AgentStatus, ApprovalState, EventStatus, HealthStatus};
use sindri_model::{
    AdminId, AgentId, ApprovalId, AuditId, Checksum, DeliveryId, EventId, GeneratorId, HealthId, LinkId, PakId,
    ProposalId, RevisionId, Sequence, StackId, WebhookId,
};

use crate::store::records::StoreError;

/// Value of a column, or of a parameter of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Blob(Vec<u8>),
}

/// Builds the parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::sql::shared::values::Value::from($value)),*][..] };
}
pub(crate) use values;

/// Builds one row of a batch.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::sql::shared::values::Value::from($value)),*] };
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

/// A type that can be read from a column.
pub(crate) trait Column: Sized {
    fn read(value: Value) -> Result<Self, String>;
}

macro_rules! store_as_text {
    ($($name:ty),* $(,)?) => {$(
        impl From<$name> for Value {
            fn from(id: $name) -> Self {
                Self::Text(id.to_string())
            }
        }

        impl Column for $name {
            fn read(value: Value) -> Result<Self, String> {
                parse_text(value)
            }
        }
    )*};
}

store_as_text!(
    AdminId,
    AgentId,
    ApprovalId,
    AuditId,
    DeliveryId,
    EventId,
    GeneratorId,
    HealthId,
    LinkId,
    PakId,
    ProposalId,
    RevisionId,
    StackId
);
store_as_text!(WebhookId, ApprovalState, EventStatus, HealthStatus);

fn parse_text<T: FromStr<Err: Error + 'static>>(value: Value) -> Result<T, String> {
    String::read(value)?.parse().map_err(|error: T::Err| error.to_string())
}

impl Column for i64 {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Integer(number) => Ok(number),
            other => Err(type_mismatch("an integer", &other)),
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
            other => Err(type_mismatch("a text", &other)),
        }
    }
}

impl Column for Vec<u8> {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Blob(bytes) => Ok(bytes),
            other => Err(type_mismatch("a blob", &other)),
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

/// Read as stored and not computed again, so that a bundle that no longer matches its checksum is noticed.
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

/// Names the type only: the content of a column may be confidential.
fn type_mismatch(expected: &str, actual: &Value) -> String {
    let actual = match actual {
        Value::Null => "NULL",
        Value::Integer(_) => "an integer",
        Value::Text(_) => "a text",
        Value::Blob(_) => "a blob",
    };
    format!("a column holds {actual} instead of {expected}")
}

/// A row, read from its first column to its last.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    /// Reads the next column.
    pub(crate) fn take<T: Column>(&mut self) -> Result<T, StoreError> {
        let value = self.0.next().ok_or_else(|| StoreError::Failed("a row has too few columns".to_owned()))?;
        T::read(value).map_err(StoreError::Failed)
    }

    /// Reads the next column, which holds JSON.
    pub(crate) fn take_json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        let text: String = self.take()?;
        serde_json::from_str(&text).map_err(|error| StoreError::Failed(error.to_string()))
    }

    /// Reads the next column, which holds JSON or NULL.
    pub(crate) fn take_json_or_null<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.take()?;
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|error| StoreError::Failed(error.to_string()))
    }
}

/// Serializes a value as a JSON column stores it.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("values stored as JSON have text keys and serialize without errors")
}
