//! Encodes messages as Go does: fields sorted by number, required fields even if empty, maps sorted by key.
//!
//! A message is written from its end, so that its length is known when the length prefix is written.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::media::MAGIC;
use super::message_table::{Field, FieldType, Message, table};
use crate::object::fields::{group_version, string_at};

/// Wire types, in the lowest three bits of a tag.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Encodes an object with its envelope. `None` if its kind has no message type.
#[must_use]
pub fn encode(object: &Value) -> Option<Bytes> {
    let mut writer = ReverseWriter::default();
    writer.write_enveloped_object(object)?;
    Some(writer.into_bytes())
}

/// Encodes an object without its envelope. `None` if its kind has no message type.
#[must_use]
pub fn encode_content(object: &Value) -> Option<Bytes> {
    let mut writer = ReverseWriter::default();
    writer.write_message(message_type(object)?, object.as_object());
    Some(writer.into_bytes())
}

/// Wraps encoded content in an envelope with this version and kind.
#[must_use]
pub fn encode_envelope(api_version: &str, kind: &str, content: &[u8]) -> Bytes {
    let mut writer = ReverseWriter::default();
    writer.write_envelope(api_version, kind, |raw| raw.write_bytes(content));
    writer.into_bytes()
}

/// Returns the message type of an object's kind.
fn message_type(object: &Value) -> Option<&'static Message> {
    let (group, version) = group_version(string_at(object, "/apiVersion"));
    // The legacy discovery document has no version.
    table().find_kind(group, if version.is_empty() { "v1" } else { version }, string_at(object, "/kind"))
}

/// Encodes a watch event with its length prefix. `None` if its object has no message type.
#[must_use]
pub fn encode_event(kind: &str, object: &Value) -> Option<Bytes> {
    let mut writer = ReverseWriter::default();
    let mut is_encodable = true;
    writer.write_nested(2, |event| {
        event.write_nested(1, |raw| is_encodable = raw.write_enveloped_object(object).is_some())
    });
    writer.write_text(1, kind);
    let length = u32::try_from(writer.0.len()).ok().filter(|_| is_encodable)?;
    writer.write_bytes(&length.to_be_bytes());
    Some(writer.into_bytes())
}

/// Bytes in reverse order.
#[derive(Default)]
struct ReverseWriter(Vec<u8>);

impl ReverseWriter {
    fn into_bytes(mut self) -> Bytes {
        self.0.reverse();
        self.0.into()
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes.iter().rev());
    }

    fn write_varint(&mut self, mut number: u64) {
        let (mut digits, mut count) = ([0_u8; 10], 0);
        loop {
            let low = u8::try_from(number & 0x7f).expect("seven bits");
            number >>= 7;
            digits[count] = if number == 0 { low } else { low | 0x80 };
            count += 1;
            if number == 0 {
                break;
            }
        }
        self.write_bytes(&digits[..count]);
    }

    fn write_tag(&mut self, number: u32, wire: u64) {
        self.write_varint(u64::from(number) << 3 | wire);
    }

    fn write_number(&mut self, number: u32, value: i64) {
        self.write_varint(value.cast_unsigned());
        self.write_tag(number, VARINT);
    }

    fn write_text(&mut self, number: u32, text: &str) {
        self.write_blob(number, text.as_bytes());
    }

    fn write_blob(&mut self, number: u32, bytes: &[u8]) {
        self.write_bytes(bytes);
        self.write_varint(bytes.len() as u64);
        self.write_tag(number, LENGTH);
    }

    /// Writes a field that is a message.
    fn write_nested(&mut self, number: u32, content: impl FnOnce(&mut Self)) {
        let end = self.0.len();
        content(self);
        self.write_varint((self.0.len() - end) as u64);
        self.write_tag(number, LENGTH);
    }

    fn write_enveloped_object(&mut self, object: &Value) -> Option<()> {
        let message = message_type(object)?;
        let content = |raw: &mut Self| raw.write_message(message, object.as_object());
        self.write_envelope(string_at(object, "/apiVersion"), string_at(object, "/kind"), content);
        Some(())
    }

    fn write_envelope(&mut self, api_version: &str, kind: &str, content: impl FnOnce(&mut Self)) {
        self.write_text(4, "");
        self.write_text(3, "");
        self.write_nested(2, content);
        self.write_nested(1, |type_meta| {
            type_meta.write_text(2, kind);
            type_meta.write_text(1, api_version);
        });
        self.write_bytes(MAGIC);
    }

    fn write_message(&mut self, message: &Message, object: Option<&Map<String, Value>>) {
        for field in message.fields.iter().rev() {
            if field.name.is_empty() {
                self.write_embedded(field, object);
            } else {
                let value = object.and_then(|object| object.get(&field.name)).unwrap_or(&Value::Null);
                self.write_field(field.number, &field.field_type, value);
            }
        }
    }

    /// Writes a message whose fields are embedded in its parent in JSON.
    fn write_embedded(&mut self, field: &Field, object: Option<&Map<String, Value>>) {
        let (field_type, is_optional) = match &field.field_type {
            FieldType::Optional(inner) => (inner.as_ref(), true),
            field_type => (field_type, false),
        };
        let FieldType::Message(name) = field_type else { return };
        let message = table().message(name);
        let is_set = |field: &Field| object.is_some_and(|object| object.contains_key(&field.name));
        if !is_optional || message.fields.iter().any(is_set) {
            self.write_nested(field.number, |nested| nested.write_message(message, object));
        }
    }

    fn write_field(&mut self, number: u32, field_type: &FieldType, value: &Value) {
        let text = value.as_str().unwrap_or_default();
        match field_type {
            FieldType::Optional(inner) if !value.is_null() => self.write_field(number, inner, value),
            FieldType::List(inner) => {
                for element in value.as_array().into_iter().flatten().rev() {
                    self.write_field(number, inner, element);
                }
            }
            FieldType::Map(inner) => self.write_map(number, inner, value),
            FieldType::String => self.write_text(number, text),
            FieldType::Bool => self.write_number(number, i64::from(value == &Value::Bool(true))),
            FieldType::Integer => self.write_number(number, to_integer(value)),
            FieldType::Float => {
                self.write_bytes(&value.as_f64().unwrap_or_default().to_le_bytes());
                self.write_tag(number, FIXED64);
            }
            FieldType::Bytes if !value.is_null() => self.write_blob(number, &STANDARD.decode(text).unwrap_or_default()),
            FieldType::Optional(_) | FieldType::Bytes => {}
            FieldType::Message(name) => {
                self.write_nested(number, |inner| inner.write_message(table().message(name), value.as_object()))
            }
            FieldType::Quantity
            | FieldType::IntOrString
            | FieldType::Time
            | FieldType::MicroTime
            | FieldType::Duration
            | FieldType::RawJson
            | FieldType::FieldsV1
            | FieldType::WrappedStrings
            | FieldType::SchemaOrSchemas
            | FieldType::SchemaOrBool
            | FieldType::SchemaOrStrings => self.write_nested(number, |inner| inner.write_special(field_type, value)),
        }
    }

    fn write_map(&mut self, number: u32, field_type: &FieldType, value: &Value) {
        let sorted: BTreeMap<&String, &Value> = value.as_object().into_iter().flatten().collect();
        for (key, value) in sorted.into_iter().rev() {
            self.write_nested(number, |entry| {
                entry.write_field(2, field_type, value);
                entry.write_text(1, key);
            });
        }
    }

    /// Writes the types for which Go has hand-written encoders.
    fn write_special(&mut self, field_type: &FieldType, value: &Value) {
        let text = value.as_str().unwrap_or_default();
        match field_type {
            FieldType::Quantity => self.write_text(1, if text.is_empty() { "0" } else { text }),
            FieldType::IntOrString => {
                self.write_text(3, text);
                self.write_number(2, value.as_i64().unwrap_or_default());
                self.write_number(1, i64::from(value.is_string()));
            }
            FieldType::Time | FieldType::MicroTime => self.write_time(text, matches!(field_type, FieldType::MicroTime)),
            FieldType::Duration => self.write_number(1, parse_seconds(text)),
            FieldType::RawJson if !value.is_null() => self.write_text(1, &value.to_string()),
            FieldType::FieldsV1 if !value.is_null() => self.write_text(1, &format_fields_v1(value)),
            FieldType::WrappedStrings => self.write_field(1, &FieldType::List(Box::new(FieldType::String)), value),
            FieldType::SchemaOrSchemas if value.is_array() => {
                for schema in value.as_array().into_iter().flatten().rev() {
                    self.write_nested(2, |inner| inner.write_message(table().schema(), schema.as_object()));
                }
            }
            FieldType::SchemaOrStrings if value.is_array() => {
                self.write_field(2, &FieldType::List(Box::new(FieldType::String)), value)
            }
            FieldType::SchemaOrBool => {
                if value.is_object() {
                    self.write_nested(2, |inner| inner.write_message(table().schema(), value.as_object()));
                }
                self.write_number(1, i64::from(value != &Value::Bool(false)));
            }
            FieldType::SchemaOrSchemas | FieldType::SchemaOrStrings if value.is_object() => {
                self.write_nested(1, |inner| inner.write_message(table().schema(), value.as_object()));
            }
            // Null, or a type that `write_field` encodes.
            _ => {}
        }
    }

    fn write_time(&mut self, text: &str, with_micros: bool) {
        let Ok(time) = text.parse::<Timestamp>() else { return };
        let nanos = if with_micros { time.subsec_nanosecond() / 1_000 * 1_000 } else { 0 };
        self.write_number(2, i64::from(nanos));
        self.write_number(1, time.as_second());
    }
}

/// Returns a number as an integer, also if it is written with a fraction or exponent.
fn to_integer(value: &Value) -> i64 {
    let rounded = || {
        let number = value.as_f64()?;
        format!("{number:.0}").parse().ok()
    };
    value.as_i64().or_else(rounded).unwrap_or_default()
}

/// Parses a duration in whole seconds and returns nanoseconds.
fn parse_seconds(text: &str) -> i64 {
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse::<i64>().ok());
    seconds.unwrap_or_default().saturating_mul(NANOS_PER_SECOND)
}

/// Formats `fieldsV1` with the elements in path order, in which numbers are compared numerically.
fn format_fields_v1(fields: &Value) -> String {
    let Value::Object(map) = fields else { return fields.to_string() };
    let mut sorted: Vec<(&String, &Value)> = map.iter().collect();
    sorted.sort_by(|(one, _), (other, _)| compare_path_elements(one, other));
    let parts: Vec<String> = sorted
        .into_iter()
        .map(|(name, inner)| format!("{}:{}", Value::from(name.as_str()), format_fields_v1(inner)))
        .collect();
    format!("{{{}}}", parts.join(","))
}

fn compare_path_elements(one: &str, other: &str) -> Ordering {
    let split = |element: &str| element.split_once(':').map(|(prefix, rest)| (prefix.to_owned(), rest.to_owned()));
    let rank = |prefix: &str| ["f", "k", "v", "i"].iter().position(|known| *known == prefix);
    match (split(one), split(other)) {
        (Some((prefix, one)), Some((other_prefix, other))) if prefix == other_prefix && prefix != "f" => {
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            compare_values(&parse(&one), &parse(&other))
        }
        (Some((prefix, one)), Some((other_prefix, other))) => {
            rank(&prefix).cmp(&rank(&other_prefix)).then(one.cmp(&other))
        }
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Compares numbers numerically and other values as text; of list keys the first difference decides.
fn compare_values(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::Object(one), Value::Object(other)) => {
            let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) = (one.iter().collect(), other.iter().collect());
            let pairs = one.iter().zip(other.iter());
            let orders = pairs
                .map(|((name, value), (other_name, other))| name.cmp(other_name).then(compare_values(value, other)));
            orders.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (one, other) => one.to_string().cmp(&other.to_string()),
    }
}
