//! Reading messages as Go does: what is not known is left out, and what is broken is told in Go's words.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::MAGIC;
use super::table::{Field, Message, Of, table};
use super::wire::{FIXED, LENGTH, Rest, Tag, VARINT, Wire, fields};
use crate::http::request::Request;
use crate::object::fields::{api_version, group_version, stamp};
use sindri_cel::quantity::{MALFORMED, Quantity};

/// How deep messages may be inside each other.
const DEPTH_MAX: usize = 100;
const NANOS_OF_SECOND: i64 = 1_000_000_000;

/// A body that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// Not even what it is can be told.
    #[error("{0}")]
    Envelope(String),
    /// It says what it is, and is not.
    #[error("{kind} in version {version:?}: {why}")]
    Content {
        /// The version without its group.
        version: String,
        /// The kind.
        kind: String,
        /// What is wrong.
        why: String,
    },
}

impl ReadError {
    /// What is wrong, without what it is wrong with.
    pub(crate) fn why(self) -> String {
        match self {
            Self::Envelope(why) | Self::Content { why, .. } => why,
        }
    }
}

/// The same request in JSON, if its body is a message that can be read. What cannot stays, and is refused later. A body that
/// does not say what it is, is what the path is about.
pub(crate) fn in_json(request: &Request, expected: (&str, &str)) -> Option<Request> {
    let object = read_as(&request.body, expected).ok()?;
    let mut changed = request.clone();
    changed.body = object.to_string().into();
    "application/json".clone_into(&mut changed.headers.content_type);
    Some(changed)
}

/// Reads a whole body: an envelope that says what is in it.
///
/// # Errors
/// When it is broken.
pub fn read(body: &[u8]) -> Result<Value, ReadError> {
    read_as(body, ("", ""))
}

/// Reads an event of a watch, without its length.
///
/// # Errors
/// When it is broken.
pub fn read_event(frame: &[u8]) -> Result<Value, ReadError> {
    let parts = fields(frame, "WatchEvent", &[(1, "Type", LENGTH), (2, "Object", LENGTH)]);
    let mut event = json!({});
    for part in parts.map_err(ReadError::Envelope)? {
        match part {
            (1, Wire::Bytes(kind)) => event["type"] = json!(String::from_utf8_lossy(kind)),
            (_, Wire::Bytes(object)) => event["object"] = read(raw(object).map_err(ReadError::Envelope)?)?,
            (_, Wire::Number(_) | Wire::Fixed(_)) => {}
        }
    }
    Ok(event)
}

/// Reads a body that may leave out its version and kind.
pub(crate) fn read_as(body: &[u8], expected: (&str, &str)) -> Result<Value, ReadError> {
    let refuse = |why: &str| Err(ReadError::Envelope(why.to_owned()));
    if body.is_empty() {
        return refuse("empty data");
    }
    let Some(message) = body.strip_prefix(MAGIC) else {
        return refuse("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    };
    if message.is_empty() {
        return refuse("empty body");
    }
    let (version, kind, raw) = envelope(message).map_err(ReadError::Envelope)?;
    let (version, kind) = named(&version, &kind, expected);
    let (group, plain) = group_version(&version);
    let content = |why: String| ReadError::Content { version: plain.to_owned(), kind: kind.clone(), why };
    let mut object = match table().of_kind(group, if plain.is_empty() { "v1" } else { plain }, &kind) {
        Some(of) => read_message(of, raw, 0).map(Value::Object).map_err(content)?,
        // What it says it is will be refused.
        None => json!({}),
    };
    object["apiVersion"] = json!(api_version(group, plain));
    object["kind"] = json!(kind);
    Ok(object)
}

/// What an envelope says, completed by what is expected. A version of too many parts is none.
fn named(version: &str, kind: &str, (expected, expected_kind): (&str, &str)) -> (String, String) {
    if version.split('/').count() > 2 {
        return (expected.to_owned(), expected_kind.to_owned());
    }
    let or = |said: &str, expected: &str| if said.is_empty() { expected } else { said }.to_owned();
    (or(version, expected), or(kind, expected_kind))
}

/// Version, kind and content of an envelope.
fn envelope(message: &[u8]) -> Result<(String, String, &[u8]), String> {
    let known =
        [(1, "TypeMeta", LENGTH), (2, "Raw", LENGTH), (3, "ContentEncoding", LENGTH), (4, "ContentType", LENGTH)];
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for part in fields(message, "Unknown", &known)? {
        match part {
            (1, Wire::Bytes(meta)) => {
                for part in fields(meta, "TypeMeta", &[(1, "APIVersion", LENGTH), (2, "Kind", LENGTH)])? {
                    match part {
                        (1, Wire::Bytes(text)) => version = String::from_utf8_lossy(text).into_owned(),
                        (_, Wire::Bytes(text)) => kind = String::from_utf8_lossy(text).into_owned(),
                        (_, Wire::Number(_) | Wire::Fixed(_)) => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    Ok((version, kind, raw))
}

/// Reads a message by the table of its fields.
fn read_message(of: &Message, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    if depth > DEPTH_MAX {
        return Err("proto: messages are inside each other too deep".to_owned());
    }
    let mut object = Map::new();
    let mut rest = Rest(bytes);
    while let Some(tag) = rest.tag(&of.name)? {
        let Some(field) = of.field(tag.number) else {
            rest.skip(&tag)?;
            continue;
        };
        let wire = rest.value(&tag, &field.go, ways(&field.of))?;
        put(&mut object, field, wire, depth)?;
    }
    Ok(object)
}

/// How the values of a field may be written.
fn ways(of: &Of) -> &'static [u8] {
    match of {
        Of::Optional(inner) => ways(inner),
        // Numbers may come together.
        Of::List(inner) if matches!(inner.as_ref(), Of::Number) => &[VARINT, LENGTH],
        Of::List(inner) => ways(inner),
        Of::Truth | Of::Number => &[VARINT],
        Of::Fraction => &[FIXED],
        Of::Text
        | Of::Bytes
        | Of::Quantity
        | Of::IntOrString
        | Of::Time
        | Of::MicroTime
        | Of::Span
        | Of::Any
        | Of::Owned
        | Of::Texts
        | Of::OneOrMany
        | Of::OneOrTruth
        | Of::OneOrNames
        | Of::Message(_)
        | Of::Map(_) => &[LENGTH],
    }
}

/// Puts what was read into the object. What may come again is added to what came before.
fn put(object: &mut Map<String, Value>, field: &Field, wire: Wire<'_>, depth: usize) -> Result<(), String> {
    let name = &field.name;
    match (&field.of, wire) {
        (Of::List(inner), wire) => {
            let mut known = object.remove(name).unwrap_or_else(|| json!([]));
            let elements = known.as_array_mut().into_iter();
            match (inner.as_ref(), wire) {
                (Of::Number, Wire::Bytes(packed)) => {
                    let read = numbers(packed)?;
                    elements.for_each(|elements| elements.extend(read.iter().cloned()));
                }
                (of, wire) => {
                    let read = single(of, wire, depth)?;
                    elements.for_each(|elements| elements.push(read.clone()));
                }
            }
            object.insert(name.clone(), known);
        }
        (Of::Map(inner), Wire::Bytes(bytes)) => {
            let (key, value) = pair(inner, bytes, depth)?;
            let mut known = object.remove(name).unwrap_or_else(|| json!({}));
            known[key] = value;
            object.insert(name.clone(), known);
        }
        (of, wire) => {
            let is_optional = matches!(of, Of::Optional(_));
            let value = single(of, wire, depth)?;
            // Go writes what is not set too; only what may be missing is then set on purpose.
            if !field.always && !is_optional && !matches!(of, Of::Bytes) && is_nothing(&value) {
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

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn numbers(packed: &[u8]) -> Result<Vec<Value>, String> {
    let (mut rest, mut numbers) = (Rest(packed), Vec::new());
    while !rest.0.is_empty() {
        numbers.push(json!(rest.varint()?.cast_signed()));
    }
    Ok(numbers)
}

/// An entry of a map. Go does not look at how its parts say that they are written.
fn pair(of: &Of, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
    let (mut key, mut value) = (String::new(), None);
    let mut rest = Rest(bytes);
    while !rest.0.is_empty() {
        let written = rest.varint()?;
        let tag = Tag { number: 0, kind: u8::try_from(written & 7).expect("three bits") };
        match written >> 3 {
            1 => key = String::from_utf8_lossy(rest.delimited()?).into_owned(),
            2 => value = Some(single(of, Wire::Bytes(rest.delimited()?), depth)?),
            _ => rest.skip(&tag)?,
        }
    }
    let missing = || match of {
        Of::Bytes => Ok(Value::Null),
        of => single(of, Wire::Bytes(&[]), depth),
    };
    Ok((key, value.map_or_else(missing, Ok)?))
}

fn single(of: &Of, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (of, wire) {
        (Of::Optional(inner), wire) => single(inner, wire, depth)?,
        (Of::Truth, Wire::Number(number)) => json!(number != 0),
        (Of::Number, Wire::Number(number)) => json!(number.cast_signed()),
        (Of::Fraction, Wire::Fixed(bits)) => fraction(f64::from_bits(bits)),
        (Of::Text, Wire::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
        (Of::Bytes, Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Of::Message(name), Wire::Bytes(bytes)) => read_message(table().message(name), bytes, depth + 1)?.into(),
        (_, Wire::Bytes(bytes)) => peculiar(of, bytes, depth)?,
        (_, Wire::Number(_) | Wire::Fixed(_)) => Value::Null,
    })
}

/// A fraction as JSON writes it; one that is whole has none.
fn fraction(number: f64) -> Value {
    let whole = format!("{number:.0}").parse::<i64>().ok().filter(|_| number.fract() == 0.0);
    whole.map_or_else(|| json!(number), |whole| json!(whole))
}

/// What Go reads with code of its own.
fn peculiar(of: &Of, bytes: &[u8], depth: usize) -> Result<Value, String> {
    Ok(match of {
        Of::Quantity => quantity(bytes)?,
        Of::IntOrString => either(bytes)?,
        Of::Time => time(bytes, false)?,
        Of::MicroTime => time(bytes, true)?,
        Of::Span => {
            let parts = fields(bytes, "Duration", &[(1, "Duration", VARINT)])?;
            let span = parts.last().map_or(0, |(_, wire)| signed(*wire));
            json!(format!("{}s", span / NANOS_OF_SECOND))
        }
        Of::Any | Of::Owned => serde_json::from_slice(raw(bytes)?).unwrap_or_default(),
        Of::Texts => json!(texts(&fields(bytes, "ExtraValue", &[(1, "Items", LENGTH)])?, 1)),
        Of::OneOrMany => {
            let parts = fields(bytes, "JSONSchemaPropsOrArray", &[(1, "Schema", LENGTH), (2, "JSONSchemas", LENGTH)])?;
            let many = schemas(&parts, 2, depth)?;
            if many.is_empty() { schemas(&parts, 1, depth)?.pop().unwrap_or_default() } else { many.into() }
        }
        Of::OneOrTruth => {
            let parts = fields(bytes, "JSONSchemaPropsOrBool", &[(1, "Allows", VARINT), (2, "Schema", LENGTH)])?;
            let allows = parts.iter().any(|(number, wire)| *number == 1 && signed(*wire) != 0);
            schemas(&parts, 2, depth)?.pop().unwrap_or_else(|| json!(allows))
        }
        Of::OneOrNames => {
            let known = [(1, "Schema", LENGTH), (2, "Property", LENGTH)];
            let parts = fields(bytes, "JSONSchemaPropsOrStringArray", &known)?;
            schemas(&parts, 1, depth)?.pop().unwrap_or_else(|| json!(texts(&parts, 2)))
        }
        // Everything else is read without code of its own.
        _ => Value::Null,
    })
}

fn signed(wire: Wire<'_>) -> i64 {
    match wire {
        Wire::Number(number) => number.cast_signed(),
        Wire::Fixed(_) | Wire::Bytes(_) => 0,
    }
}

fn texts(parts: &[(u32, Wire<'_>)], number: u32) -> Vec<String> {
    let text = |part: &(u32, Wire<'_>)| match part {
        (found, Wire::Bytes(bytes)) if *found == number => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

fn schemas(parts: &[(u32, Wire<'_>)], number: u32, depth: usize) -> Result<Vec<Value>, String> {
    let mut read = Vec::new();
    for part in parts {
        if let (found, Wire::Bytes(bytes)) = part
            && *found == number
        {
            read.push(read_message(table().schema(), bytes, depth + 1)?.into());
        }
    }
    Ok(read)
}

/// The bytes of a message that has nothing else.
fn raw(bytes: &[u8]) -> Result<&[u8], String> {
    let last = fields(bytes, "RawExtension", &[(1, "Raw", LENGTH)])?.pop();
    Ok(match last {
        Some((_, Wire::Bytes(bytes))) => bytes,
        Some((_, Wire::Number(_) | Wire::Fixed(_))) | None => &[],
    })
}

fn quantity(bytes: &[u8]) -> Result<Value, String> {
    let known = fields(bytes, "Quantity", &[(1, "String_", LENGTH)])?;
    match texts(&known, 1).pop() {
        None => Ok(json!("0")),
        Some(text) if Quantity::parse(&text).is_some() => Ok(json!(text)),
        Some(_) => Err(MALFORMED.to_owned()),
    }
}

fn either(bytes: &[u8]) -> Result<Value, String> {
    let parts = fields(bytes, "IntOrString", &[(1, "Type", VARINT), (2, "IntVal", VARINT), (3, "StrVal", LENGTH)])?;
    let number = |wanted: u32| parts.iter().rfind(|(number, _)| *number == wanted).map_or(0, |(_, wire)| signed(*wire));
    Ok(if number(1) == 1 { json!(texts(&parts, 3).pop().unwrap_or_default()) } else { json!(number(2)) })
}

/// A time; nothing is none.
fn time(bytes: &[u8], exact: bool) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let parts = fields(bytes, "Timestamp", &[(1, "Seconds", VARINT), (2, "Nanos", VARINT)])?;
    let number = |wanted: u32| parts.iter().rfind(|(number, _)| *number == wanted).map_or(0, |(_, wire)| signed(*wire));
    let nanos = if exact { i32::try_from(number(2)).unwrap_or_default() / 1_000 * 1_000 } else { 0 };
    let Ok(at) = Timestamp::new(number(1), nanos) else { return Ok(Value::Null) };
    Ok(json!(if exact { at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string() } else { stamp(at) }))
}
