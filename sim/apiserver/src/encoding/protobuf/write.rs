//! Writing messages as Go does: fields in the order of their numbers, what cannot be missing even when it is empty, maps in
//! the order of their keys.
//!
//! A message is written from its end, so that its length is known when it is written in front of it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::MAGIC;
use super::table::{Field, Message, Of, table};
use crate::object::fields::{group_version, text};

/// Numbers are in the lowest three bits of a tag: how what follows is written.
const VARINT: u64 = 0;
const FIXED: u64 = 1;
const LENGTH: u64 = 2;
const NANOS_OF_SECOND: i64 = 1_000_000_000;

/// An object in its envelope. `None` if it is of no kind that has a message.
#[must_use]
pub fn write(object: &Value) -> Option<Bytes> {
    let mut written = Backwards::default();
    written.envelope(object)?;
    Some(written.forwards())
}

/// An object without its envelope. `None` if it is of no kind that has a message.
#[must_use]
pub fn content(object: &Value) -> Option<Bytes> {
    let mut written = Backwards::default();
    written.message(message_of(object)?, object.as_object());
    Some(written.forwards())
}

/// An envelope that says that this is in it.
#[must_use]
pub fn envelope(api_version: &str, kind: &str, content: &[u8]) -> Bytes {
    let mut written = Backwards::default();
    written.enveloped(api_version, kind, |raw| raw.bytes(content));
    written.forwards()
}

/// The message of the kind that an object says it is.
fn message_of(object: &Value) -> Option<&'static Message> {
    let (group, version) = group_version(text(object, "/apiVersion"));
    // The oldest document of discovery says no version.
    table().of_kind(group, if version.is_empty() { "v1" } else { version }, text(object, "/kind"))
}

/// An event of a watch, with its length before it. `None` if its object has no message.
#[must_use]
pub fn write_event(kind: &str, object: &Value) -> Option<Bytes> {
    let mut written = Backwards::default();
    let mut readable = true;
    written.nested(2, |event| event.nested(1, |raw| readable = raw.envelope(object).is_some()));
    written.text(1, kind);
    let length = u32::try_from(written.0.len()).ok().filter(|_| readable)?;
    written.bytes(&length.to_be_bytes());
    Some(written.forwards())
}

/// Bytes, the last one first.
#[derive(Default)]
struct Backwards(Vec<u8>);

impl Backwards {
    fn forwards(mut self) -> Bytes {
        self.0.reverse();
        self.0.into()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes.iter().rev());
    }

    fn varint(&mut self, mut number: u64) {
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
        self.bytes(&digits[..count]);
    }

    fn tag(&mut self, number: u32, wire: u64) {
        self.varint(u64::from(number) << 3 | wire);
    }

    fn number(&mut self, number: u32, value: i64) {
        self.varint(value.cast_unsigned());
        self.tag(number, VARINT);
    }

    fn text(&mut self, number: u32, text: &str) {
        self.blob(number, text.as_bytes());
    }

    fn blob(&mut self, number: u32, bytes: &[u8]) {
        self.bytes(bytes);
        self.varint(bytes.len() as u64);
        self.tag(number, LENGTH);
    }

    /// A field that is a message.
    fn nested(&mut self, number: u32, content: impl FnOnce(&mut Self)) {
        let end = self.0.len();
        content(self);
        self.varint((self.0.len() - end) as u64);
        self.tag(number, LENGTH);
    }

    fn envelope(&mut self, object: &Value) -> Option<()> {
        let message = message_of(object)?;
        let content = |raw: &mut Self| raw.message(message, object.as_object());
        self.enveloped(text(object, "/apiVersion"), text(object, "/kind"), content);
        Some(())
    }

    fn enveloped(&mut self, api_version: &str, kind: &str, content: impl FnOnce(&mut Self)) {
        self.text(4, "");
        self.text(3, "");
        self.nested(2, content);
        self.nested(1, |named| {
            named.text(2, kind);
            named.text(1, api_version);
        });
        self.bytes(MAGIC);
    }

    fn message(&mut self, message: &Message, object: Option<&Map<String, Value>>) {
        for field in message.fields.iter().rev() {
            if field.name.is_empty() {
                self.beside(field, object);
            } else {
                let value = object.and_then(|object| object.get(&field.name)).unwrap_or(&Value::Null);
                self.field(field.number, &field.of, value);
            }
        }
    }

    /// A message whose fields stand in JSON beside those of its holder.
    fn beside(&mut self, field: &Field, object: Option<&Map<String, Value>>) {
        let (of, is_optional) = match &field.of {
            Of::Optional(inner) => (inner.as_ref(), true),
            of => (of, false),
        };
        let Of::Message(name) = of else { return };
        let message = table().message(name);
        let is_set = |field: &Field| object.is_some_and(|object| object.contains_key(&field.name));
        if !is_optional || message.fields.iter().any(is_set) {
            self.nested(field.number, |nested| nested.message(message, object));
        }
    }

    fn field(&mut self, number: u32, of: &Of, value: &Value) {
        let text = value.as_str().unwrap_or_default();
        match of {
            Of::Optional(inner) if !value.is_null() => self.field(number, inner, value),
            Of::List(inner) => {
                for element in value.as_array().into_iter().flatten().rev() {
                    self.field(number, inner, element);
                }
            }
            Of::Map(inner) => self.map(number, inner, value),
            Of::Text => self.text(number, text),
            Of::Truth => self.number(number, i64::from(value == &Value::Bool(true))),
            Of::Number => self.number(number, whole(value)),
            Of::Fraction => {
                self.bytes(&value.as_f64().unwrap_or_default().to_le_bytes());
                self.tag(number, FIXED);
            }
            Of::Bytes if !value.is_null() => self.blob(number, &STANDARD.decode(text).unwrap_or_default()),
            Of::Optional(_) | Of::Bytes => {}
            Of::Message(name) => self.nested(number, |inner| inner.message(table().message(name), value.as_object())),
            Of::Quantity
            | Of::IntOrString
            | Of::Time
            | Of::MicroTime
            | Of::Span
            | Of::Any
            | Of::Owned
            | Of::Texts
            | Of::OneOrMany
            | Of::OneOrTruth
            | Of::OneOrNames => self.nested(number, |inner| inner.peculiar(of, value)),
        }
    }

    fn map(&mut self, number: u32, of: &Of, value: &Value) {
        let sorted: BTreeMap<&String, &Value> = value.as_object().into_iter().flatten().collect();
        for (key, value) in sorted.into_iter().rev() {
            self.nested(number, |pair| {
                pair.field(2, of, value);
                pair.text(1, key);
            });
        }
    }

    /// What Go writes with code of its own.
    fn peculiar(&mut self, of: &Of, value: &Value) {
        let text = value.as_str().unwrap_or_default();
        match of {
            Of::Quantity => self.text(1, if text.is_empty() { "0" } else { text }),
            Of::IntOrString => {
                self.text(3, text);
                self.number(2, value.as_i64().unwrap_or_default());
                self.number(1, i64::from(value.is_string()));
            }
            Of::Time | Of::MicroTime => self.time(text, matches!(of, Of::MicroTime)),
            Of::Span => self.number(1, span(text)),
            Of::Any if !value.is_null() => self.text(1, &value.to_string()),
            Of::Owned if !value.is_null() => self.text(1, &owned(value)),
            Of::Texts => self.field(1, &Of::List(Box::new(Of::Text)), value),
            Of::OneOrMany if value.is_array() => {
                for schema in value.as_array().into_iter().flatten().rev() {
                    self.nested(2, |inner| inner.message(table().schema(), schema.as_object()));
                }
            }
            Of::OneOrNames if value.is_array() => self.field(2, &Of::List(Box::new(Of::Text)), value),
            Of::OneOrTruth => {
                if value.is_object() {
                    self.nested(2, |inner| inner.message(table().schema(), value.as_object()));
                }
                self.number(1, i64::from(value != &Value::Bool(false)));
            }
            Of::OneOrMany | Of::OneOrNames if value.is_object() => {
                self.nested(1, |inner| inner.message(table().schema(), value.as_object()));
            }
            // Nothing, or a field that is written without code of its own.
            _ => {}
        }
    }

    fn time(&mut self, text: &str, exact: bool) {
        let Ok(at) = text.parse::<Timestamp>() else { return };
        let nanos = if exact { at.subsec_nanosecond() / 1_000 * 1_000 } else { 0 };
        self.number(2, i64::from(nanos));
        self.number(1, at.as_second());
    }
}

/// A number without a fraction, whichever way it is written.
fn whole(value: &Value) -> i64 {
    let rounded = || {
        let number = value.as_f64()?;
        format!("{number:.0}").parse().ok()
    };
    value.as_i64().or_else(rounded).unwrap_or_default()
}

/// A span of whole seconds.
fn span(text: &str) -> i64 {
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse::<i64>().ok());
    seconds.unwrap_or_default().saturating_mul(NANOS_OF_SECOND)
}

/// The fields of a manager in the order of their paths, in which numbers are no texts.
fn owned(fields: &Value) -> String {
    let Value::Object(map) = fields else { return fields.to_string() };
    let mut sorted: Vec<(&String, &Value)> = map.iter().collect();
    sorted.sort_by(|(one, _), (other, _)| in_paths(one, other));
    let parts: Vec<String> =
        sorted.into_iter().map(|(name, inner)| format!("{}:{}", Value::from(name.as_str()), owned(inner))).collect();
    format!("{{{}}}", parts.join(","))
}

fn in_paths(one: &str, other: &str) -> Ordering {
    let split = |element: &str| element.split_once(':').map(|(sort, rest)| (sort.to_owned(), rest.to_owned()));
    let rank = |sort: &str| ["f", "k", "v", "i"].iter().position(|known| *known == sort);
    match (split(one), split(other)) {
        (Some((sort, one)), Some((other_sort, other))) if sort == other_sort && sort != "f" => {
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            by_value(&read(&one), &read(&other))
        }
        (Some((sort, one)), Some((other_sort, other))) => rank(&sort).cmp(&rank(&other_sort)).then(one.cmp(&other)),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Numbers by their size, everything else by its text; of keys the first part that differs decides.
fn by_value(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::Object(one), Value::Object(other)) => {
            let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) = (one.iter().collect(), other.iter().collect());
            let pairs = one.iter().zip(other.iter());
            let decided =
                pairs.map(|((name, value), (other_name, other))| name.cmp(other_name).then(by_value(value, other)));
            decided.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (one, other) => one.to_string().cmp(&other.to_string()),
    }
}
