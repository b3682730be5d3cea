//! Decodes messages as Go does: unknown fields are ignored, and errors have the messages of Go's decoder.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::media::MAGIC;
use super::message_table::{Field, FieldType, Message, table};
use super::wire::{FIXED64, LENGTH, MessageReader, Tag, VARINT, WireValue, read_fields};
use crate::object::fields::{api_version, format_timestamp, group_version};
use sindri_cel::quantity::{MALFORMED, Quantity};

/// Maximum nesting depth of messages.
const DEPTH_MAX: usize = 100;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A body that cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProtobufError {
    /// The envelope is malformed: the kind is unknown.
    #[error("{0}")]
    Envelope(String),
    /// The content is not a valid message of the kind that the envelope names.
    #[error("{kind} in version {version:?}: {message}")]
    Content {
        /// Version without the group.
        version: String,
        /// The kind.
        kind: String,
        /// The error message.
        message: String,
    },
}

impl ProtobufError {
    /// Returns the error message without version and kind.
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Envelope(message) | Self::Content { message, .. } => message,
        }
    }
}

/// Decodes a whole body: an envelope with its content.
///
/// # Errors
/// If the body is malformed.
pub fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    decode_as(body, ("", ""))
}

/// Decodes a watch event, without its length prefix.
///
/// # Errors
/// If the event is malformed.
pub fn decode_event(frame: &[u8]) -> Result<Value, ProtobufError> {
    let parts = read_fields(frame, "WatchEvent", &[(1, "Type", LENGTH), (2, "Object", LENGTH)]);
    let mut event = json!({});
    for part in parts.map_err(ProtobufError::Envelope)? {
        match part {
            (1, WireValue::Bytes(kind)) => event["type"] = json!(String::from_utf8_lossy(kind)),
            (_, WireValue::Bytes(object)) => event["object"] = decode(raw(object).map_err(ProtobufError::Envelope)?)?,
            (_, WireValue::Number(_) | WireValue::Fixed(_)) => {}
        }
    }
    Ok(event)
}

/// Decodes a body that may lack its version and kind.
pub(crate) fn decode_as(body: &[u8], expected: (&str, &str)) -> Result<Value, ProtobufError> {
    let reject = |message: &str| Err(ProtobufError::Envelope(message.to_owned()));
    if body.is_empty() {
        return reject("empty data");
    }
    let Some(message) = body.strip_prefix(MAGIC) else {
        return reject("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    };
    if message.is_empty() {
        return reject("empty body");
    }
    let (version, kind, raw) = decode_envelope(message).map_err(ProtobufError::Envelope)?;
    let (version, kind) = complete_kind(&version, &kind, expected);
    let (group, plain) = group_version(&version);
    let content = |message: String| ProtobufError::Content { version: plain.to_owned(), kind: kind.clone(), message };
    let mut object = match table().find_kind(group, if plain.is_empty() { "v1" } else { plain }, &kind) {
        Some(message) => decode_message(message, raw, 0).map(Value::Object).map_err(content)?,
        // A body of an unknown kind is rejected later.
        None => json!({}),
    };
    object["apiVersion"] = json!(api_version(group, plain));
    object["kind"] = json!(kind);
    Ok(object)
}

/// Completes version and kind of an envelope by the expected ones. A version with more than two parts counts as missing.
fn complete_kind(version: &str, kind: &str, (expected, expected_kind): (&str, &str)) -> (String, String) {
    if version.split('/').count() > 2 {
        return (expected.to_owned(), expected_kind.to_owned());
    }
    let or = |given: &str, expected: &str| if given.is_empty() { expected } else { given }.to_owned();
    (or(version, expected), or(kind, expected_kind))
}

/// Returns version, kind and content of an envelope.
fn decode_envelope(message: &[u8]) -> Result<(String, String, &[u8]), String> {
    let known =
        [(1, "TypeMeta", LENGTH), (2, "Raw", LENGTH), (3, "ContentEncoding", LENGTH), (4, "ContentType", LENGTH)];
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for part in read_fields(message, "Unknown", &known)? {
        match part {
            (1, WireValue::Bytes(meta)) => {
                for part in read_fields(meta, "TypeMeta", &[(1, "APIVersion", LENGTH), (2, "Kind", LENGTH)])? {
                    match part {
                        (1, WireValue::Bytes(text)) => version = String::from_utf8_lossy(text).into_owned(),
                        (_, WireValue::Bytes(text)) => kind = String::from_utf8_lossy(text).into_owned(),
                        (_, WireValue::Number(_) | WireValue::Fixed(_)) => {}
                    }
                }
            }
            (2, WireValue::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    Ok((version, kind, raw))
}

/// Decodes a message of this type.
fn decode_message(message_type: &Message, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    if depth > DEPTH_MAX {
        return Err("proto: messages are nested too deeply".to_owned());
    }
    let mut object = Map::new();
    let mut reader = MessageReader(bytes);
    while let Some(tag) = reader.read_tag(&message_type.name)? {
        let Some(field) = message_type.field(tag.number) else {
            reader.skip_value(&tag)?;
            continue;
        };
        let wire = reader.read_value(&tag, &field.go_name, wire_types(&field.field_type))?;
        insert_field(&mut object, field, wire, depth)?;
    }
    Ok(object)
}

/// Returns the wire types that the values of a field may have.
fn wire_types(field_type: &FieldType) -> &'static [u8] {
    match field_type {
        FieldType::Optional(inner) => wire_types(inner),
        // Numbers may be packed.
        FieldType::List(inner) if matches!(inner.as_ref(), FieldType::Integer) => &[VARINT, LENGTH],
        FieldType::List(inner) => wire_types(inner),
        FieldType::Bool | FieldType::Integer => &[VARINT],
        FieldType::Float => &[FIXED64],
        FieldType::String
        | FieldType::Bytes
        | FieldType::Quantity
        | FieldType::IntOrString
        | FieldType::Time
        | FieldType::MicroTime
        | FieldType::Duration
        | FieldType::RawJson
        | FieldType::FieldsV1
        | FieldType::WrappedStrings
        | FieldType::SchemaOrSchemas
        | FieldType::SchemaOrBool
        | FieldType::SchemaOrStrings
        | FieldType::Message(_)
        | FieldType::Map(_) => &[LENGTH],
    }
}

/// Decodes a field into the object. Elements of lists and maps are added to earlier ones.
fn insert_field(
    object: &mut Map<String, Value>,
    field: &Field,
    wire: WireValue<'_>,
    depth: usize,
) -> Result<(), String> {
    let name = &field.name;
    match (&field.field_type, wire) {
        (FieldType::List(inner), wire) => {
            let mut existing = object.remove(name).unwrap_or_else(|| json!([]));
            let elements = existing.as_array_mut().into_iter();
            match (inner.as_ref(), wire) {
                (FieldType::Integer, WireValue::Bytes(packed)) => {
                    let decoded = decode_packed_numbers(packed)?;
                    elements.for_each(|elements| elements.extend(decoded.iter().cloned()));
                }
                (field_type, wire) => {
                    let decoded = decode_value(field_type, wire, depth)?;
                    elements.for_each(|elements| elements.push(decoded.clone()));
                }
            }
            object.insert(name.clone(), existing);
        }
        (FieldType::Map(inner), WireValue::Bytes(bytes)) => {
            let (key, value) = decode_map_entry(inner, bytes, depth)?;
            let mut existing = object.remove(name).unwrap_or_else(|| json!({}));
            existing[key] = value;
            object.insert(name.clone(), existing);
        }
        (field_type, wire) => {
            let is_optional = matches!(field_type, FieldType::Optional(_));
            let value = decode_value(field_type, wire, depth)?;
            // Go encodes unset values too; only an optional field is set on purpose.
            if !field.is_always_present
                && !is_optional
                && !matches!(field_type, FieldType::Bytes)
                && is_zero_value(&value)
            {
                return Ok(());
            }
            match (name.is_empty(), value) {
                (true, Value::Object(inner)) => object.extend(inner),
                (true, _) => {}
                (false, value) => drop(object.insert(name.clone(), value)),
            }
        }
    }
    Ok(())
}

fn is_zero_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn decode_packed_numbers(packed: &[u8]) -> Result<Vec<Value>, String> {
    let (mut reader, mut numbers) = (MessageReader(packed), Vec::new());
    while !reader.0.is_empty() {
        numbers.push(json!(reader.read_varint()?.cast_signed()));
    }
    Ok(numbers)
}

/// Decodes an entry of a map. Like Go, it ignores the wire types of key and value.
fn decode_map_entry(field_type: &FieldType, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
    let (mut key, mut value) = (String::new(), None);
    let mut reader = MessageReader(bytes);
    while !reader.0.is_empty() {
        let raw_tag = reader.read_varint()?;
        let tag = Tag { number: 0, wire_type: u8::try_from(raw_tag & 7).expect("three bits") };
        match raw_tag >> 3 {
            1 => key = String::from_utf8_lossy(reader.read_delimited()?).into_owned(),
            2 => value = Some(decode_value(field_type, WireValue::Bytes(reader.read_delimited()?), depth)?),
            _ => reader.skip_value(&tag)?,
        }
    }
    let missing = || match field_type {
        FieldType::Bytes => Ok(Value::Null),
        field_type => decode_value(field_type, WireValue::Bytes(&[]), depth),
    };
    Ok((key, value.map_or_else(missing, Ok)?))
}

fn decode_value(field_type: &FieldType, wire: WireValue<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (field_type, wire) {
        (FieldType::Optional(inner), wire) => decode_value(inner, wire, depth)?,
        (FieldType::Bool, WireValue::Number(number)) => json!(number != 0),
        (FieldType::Integer, WireValue::Number(number)) => json!(number.cast_signed()),
        (FieldType::Float, WireValue::Fixed(bits)) => json_number(f64::from_bits(bits)),
        (FieldType::String, WireValue::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
        (FieldType::Bytes, WireValue::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (FieldType::Message(name), WireValue::Bytes(bytes)) => {
            decode_message(table().message(name), bytes, depth + 1)?.into()
        }
        (_, WireValue::Bytes(bytes)) => decode_special(field_type, bytes, depth)?,
        (_, WireValue::Number(_) | WireValue::Fixed(_)) => Value::Null,
    })
}

/// Returns a number as Go's JSON has it: without a fraction if it is whole.
fn json_number(number: f64) -> Value {
    let whole = format!("{number:.0}").parse::<i64>().ok().filter(|_| number.fract() == 0.0);
    whole.map_or_else(|| json!(number), |whole| json!(whole))
}

/// Decodes the types for which Go has hand-written decoders.
fn decode_special(field_type: &FieldType, bytes: &[u8], depth: usize) -> Result<Value, String> {
    Ok(match field_type {
        FieldType::Quantity => decode_quantity(bytes)?,
        FieldType::IntOrString => decode_int_or_string(bytes)?,
        FieldType::Time => decode_time(bytes, false)?,
        FieldType::MicroTime => decode_time(bytes, true)?,
        FieldType::Duration => {
            let parts = read_fields(bytes, "Duration", &[(1, "Duration", VARINT)])?;
            let duration = parts.last().map_or(0, |(_, wire)| signed(*wire));
            json!(format!("{}s", duration / NANOS_PER_SECOND))
        }
        FieldType::RawJson | FieldType::FieldsV1 => serde_json::from_slice(raw(bytes)?).unwrap_or_default(),
        FieldType::WrappedStrings => json!(strings(&read_fields(bytes, "ExtraValue", &[(1, "Items", LENGTH)])?, 1)),
        FieldType::SchemaOrSchemas => {
            let parts =
                read_fields(bytes, "JSONSchemaPropsOrArray", &[(1, "Schema", LENGTH), (2, "JSONSchemas", LENGTH)])?;
            let many = decode_schemas(&parts, 2, depth)?;
            if many.is_empty() { decode_schemas(&parts, 1, depth)?.pop().unwrap_or_default() } else { many.into() }
        }
        FieldType::SchemaOrBool => {
            let parts = read_fields(bytes, "JSONSchemaPropsOrBool", &[(1, "Allows", VARINT), (2, "Schema", LENGTH)])?;
            let allows = parts.iter().any(|(number, wire)| *number == 1 && signed(*wire) != 0);
            decode_schemas(&parts, 2, depth)?.pop().unwrap_or_else(|| json!(allows))
        }
        FieldType::SchemaOrStrings => {
            let known = [(1, "Schema", LENGTH), (2, "Property", LENGTH)];
            let parts = read_fields(bytes, "JSONSchemaPropsOrStringArray", &known)?;
            decode_schemas(&parts, 1, depth)?.pop().unwrap_or_else(|| json!(strings(&parts, 2)))
        }
        // The other types are decoded by `decode_value`.
        _ => Value::Null,
    })
}

fn signed(wire: WireValue<'_>) -> i64 {
    match wire {
        WireValue::Number(number) => number.cast_signed(),
        WireValue::Fixed(_) | WireValue::Bytes(_) => 0,
    }
}

fn strings(parts: &[(u32, WireValue<'_>)], number: u32) -> Vec<String> {
    let text = |part: &(u32, WireValue<'_>)| match part {
        (field_number, WireValue::Bytes(bytes)) if *field_number == number => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

fn decode_schemas(parts: &[(u32, WireValue<'_>)], number: u32, depth: usize) -> Result<Vec<Value>, String> {
    let mut schemas = Vec::new();
    for part in parts {
        if let (field_number, WireValue::Bytes(bytes)) = part
            && *field_number == number
        {
            schemas.push(decode_message(table().schema(), bytes, depth + 1)?.into());
        }
    }
    Ok(schemas)
}

/// Returns the bytes of a message that has only a `Raw` field.
fn raw(bytes: &[u8]) -> Result<&[u8], String> {
    let last = read_fields(bytes, "RawExtension", &[(1, "Raw", LENGTH)])?.pop();
    Ok(match last {
        Some((_, WireValue::Bytes(bytes))) => bytes,
        Some((_, WireValue::Number(_) | WireValue::Fixed(_))) | None => &[],
    })
}

fn decode_quantity(bytes: &[u8]) -> Result<Value, String> {
    let parts = read_fields(bytes, "Quantity", &[(1, "String_", LENGTH)])?;
    match strings(&parts, 1).pop() {
        None => Ok(json!("0")),
        Some(text) if Quantity::parse(&text).is_some() => Ok(json!(text)),
        Some(_) => Err(MALFORMED.to_owned()),
    }
}

fn decode_int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let parts =
        read_fields(bytes, "IntOrString", &[(1, "Type", VARINT), (2, "IntVal", VARINT), (3, "StrVal", LENGTH)])?;
    let number = |field: u32| parts.iter().rfind(|(number, _)| *number == field).map_or(0, |(_, wire)| signed(*wire));
    Ok(if number(1) == 1 { json!(strings(&parts, 3).pop().unwrap_or_default()) } else { json!(number(2)) })
}

/// Decodes a time; an empty message is null.
fn decode_time(bytes: &[u8], with_micros: bool) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let parts = read_fields(bytes, "Timestamp", &[(1, "Seconds", VARINT), (2, "Nanos", VARINT)])?;
    let number = |field: u32| parts.iter().rfind(|(number, _)| *number == field).map_or(0, |(_, wire)| signed(*wire));
    let nanos = if with_micros { i32::try_from(number(2)).unwrap_or_default() / 1_000 * 1_000 } else { 0 };
    let Ok(time) = Timestamp::new(number(1), nanos) else { return Ok(Value::Null) };
    Ok(json!(if with_micros { time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string() } else { format_timestamp(time) }))
}
