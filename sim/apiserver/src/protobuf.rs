//! Bodies in protobuf, as Go's clients send built-in kinds: read into the JSON that everything else understands.
//!
//! `protobuf/types.json` says which number each field has (`protobuf/main.go` wrote it). Answers are in JSON, which the same
//! clients take.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::pointer::{api_version, group_version, stamp, text};
use crate::request::Request;

const TYPES: &str = include_str!("../protobuf/types.json");
const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// How every body begins.
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may be inside each other.
const DEPTH_MAX: usize = 100;
/// Options may come in the name of any group.
const OPTIONS: [&str; 4] = ["CreateOptions", "DeleteOptions", "PatchOptions", "UpdateOptions"];

fn table() -> &'static Value {
    static READ: OnceLock<Value> = OnceLock::new();
    READ.get_or_init(|| serde_json::from_str(TYPES).expect("the table is part of the program"))
}

/// The same request in JSON, if its body is a message that is known. What is not stays, and is refused later.
pub(crate) fn in_json(request: &Request) -> Option<Request> {
    if !request.headers.content_type.starts_with(MEDIA) || request.body.is_empty() {
        return None;
    }
    let object = read(&request.body)?;
    let mut changed = request.clone();
    changed.body = object.to_string().into();
    "application/json".clone_into(&mut changed.headers.content_type);
    Some(changed)
}

/// Reads a whole body: an envelope that says what is in it.
fn read(body: &[u8]) -> Option<Value> {
    let mut meta: &[u8] = &[];
    let mut raw: &[u8] = &[];
    let mut envelope = Fields(body.strip_prefix(MAGIC)?);
    while let Some((number, wire)) = envelope.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => meta = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let named = message(&["[1,\"apiVersion\",\"s\",0]", "[2,\"kind\",\"s\",0]"].map(row), meta, 0)?;
    let (version, kind) = (text(&named, "/apiVersion"), text(&named, "/kind"));
    let (group, plain) = group_version(version);
    let key = if OPTIONS.contains(&kind) { format!("/v1/{kind}") } else { format!("{group}/{plain}/{kind}") };
    let of = table()["kinds"].get(key)?.as_str()?;
    let mut object = message(fields_of(of)?, raw, 0)?;
    object["apiVersion"] = json!(api_version(group, plain));
    object["kind"] = json!(kind);
    Some(object)
}

fn row(text: &str) -> Value {
    serde_json::from_str(text).expect("written here")
}

fn fields_of(of: &str) -> Option<&'static [Value]> {
    table()["types"].get(of).and_then(Value::as_array).map(Vec::as_slice)
}

/// What stands behind the number of a field.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The next field. The outer `None` is a message that is broken.
    fn next(&mut self) -> Option<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Fixed(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some(Some((tag >> 3, wire)))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Reads a message by the table of its fields.
fn message(fields: &[Value], bytes: &[u8], depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let mut object = Map::new();
    let mut rest = Fields(bytes);
    while let Some((number, wire)) = rest.next()? {
        let Some(field) = fields.iter().find(|field| field[0] == number) else { continue };
        let (name, of, always) = (text(field, "/1"), text(field, "/2"), field[3] == 1);
        let value = match of.strip_prefix("[]") {
            Some(element) => {
                let known = object.remove(name);
                extend(known, element, wire, depth)?
            }
            None => match of.strip_prefix("{}") {
                Some(element) => insert(object.remove(name), element, wire, depth)?,
                None => single(of, wire, depth)?,
            },
        };
        // Go writes what is not set too; only what may be missing is then set on purpose.
        if !always && !of.starts_with('*') && is_nothing(&value) {
            continue;
        }
        match (name.is_empty(), value) {
            (true, Value::Object(inner)) => object.extend(inner),
            (true, _) => {}
            (false, value) => drop(object.insert(name.to_owned(), value)),
        }
    }
    Some(Value::Object(object))
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

fn extend(known: Option<Value>, element: &str, wire: Wire<'_>, depth: usize) -> Option<Value> {
    let mut elements = match known {
        Some(Value::Array(elements)) => elements,
        _ => Vec::new(),
    };
    match (element, wire) {
        // Numbers may come together.
        ("i", Wire::Bytes(packed)) => {
            let mut numbers = Fields(packed);
            while !numbers.0.is_empty() {
                elements.push(json!(numbers.varint()?.cast_signed()));
            }
        }
        _ => elements.push(single(element, wire, depth)?),
    }
    Some(Value::Array(elements))
}

fn insert(known: Option<Value>, element: &str, wire: Wire<'_>, depth: usize) -> Option<Value> {
    let Wire::Bytes(bytes) = wire else { return None };
    let mut entries = match known {
        Some(Value::Object(entries)) => entries,
        _ => Map::new(),
    };
    let (mut key, mut value) = (String::new(), None);
    let mut pair = Fields(bytes);
    while let Some((number, wire)) = pair.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (2, wire) => value = Some(single(element, wire, depth)?),
            _ => {}
        }
    }
    entries.insert(key, value.unwrap_or_else(|| json!("")));
    Some(Value::Object(entries))
}

fn single(of: &str, wire: Wire<'_>, depth: usize) -> Option<Value> {
    let of = of.strip_prefix('*').unwrap_or(of);
    Some(match (of, wire) {
        ("b", Wire::Number(number)) => json!(number != 0),
        ("i", Wire::Number(number)) => json!(number.cast_signed()),
        ("f", Wire::Fixed(bits)) => json!(f64::from_bits(bits)),
        ("s", Wire::Bytes(bytes)) => json!(std::str::from_utf8(bytes).ok()?),
        ("y", Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        ("Q", Wire::Bytes(bytes)) => inner(bytes, "s", depth)?,
        ("R", Wire::Bytes(bytes)) => match inner(bytes, "y", depth)?.as_str() {
            Some(packed) => serde_json::from_slice(&STANDARD.decode(packed).ok()?).unwrap_or(Value::Null),
            None => Value::Null,
        },
        ("E", Wire::Bytes(bytes)) => inner(bytes, "[]s", depth)?,
        ("d", Wire::Bytes(bytes)) => {
            let span = inner(bytes, "i", depth)?.as_i64().unwrap_or_default();
            json!(format!("{}s", span / 1_000_000_000))
        }
        ("I", Wire::Bytes(bytes)) => either(bytes)?,
        ("t" | "u", Wire::Bytes(bytes)) => time(bytes, of == "u")?,
        (_, Wire::Bytes(bytes)) => message(fields_of(of)?, bytes, depth + 1)?,
        _ => return None,
    })
}

/// A message whose first field is all of it.
fn inner(bytes: &[u8], of: &str, depth: usize) -> Option<Value> {
    let field = json!([1, "inner", of, 0]);
    Some(message(&[field], bytes, depth + 1)?.get("inner").cloned().unwrap_or(Value::Null))
}

fn either(bytes: &[u8]) -> Option<Value> {
    let fields = [json!([1, "type", "i", 0]), json!([2, "number", "i", 1]), json!([3, "text", "s", 1])];
    let read = message(&fields, bytes, 0)?;
    Some(if read["type"] == 1 {
        json!(text(&read, "/text"))
    } else {
        json!(read["number"].as_i64().unwrap_or_default())
    })
}

/// A time; the one that Go takes for none is none.
fn time(bytes: &[u8], exact: bool) -> Option<Value> {
    let read = message(&[json!([1, "seconds", "i", 1]), json!([2, "nanos", "i", 1])], bytes, 0)?;
    let number = |name: &str| read.get(name).and_then(Value::as_i64);
    let Some(seconds) = number("seconds").filter(|seconds| *seconds != 0) else { return Some(Value::Null) };
    let nanos = i32::try_from(number("nanos").unwrap_or_default()).ok()?;
    let at = Timestamp::new(seconds, nanos).ok()?;
    Some(json!(if exact { at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string() } else { stamp(at) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointer::list;

    fn part(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("short");
        [&[number << 3 | 2, length][..], content].concat()
    }

    #[test]
    fn a_message_is_read_by_its_numbers_and_what_is_not_set_is_left_out() {
        let meta = [part(1, b"v1"), part(2, b"ConfigMap")].concat();
        let names = [part(1, b"settings"), part(2, b""), part(3, b"default")].concat();
        let data = [part(1, b"colour"), part(2, b"blue")].concat();
        let raw = [part(1, &names), part(2, &data)].concat();
        let body = [MAGIC.to_vec(), part(1, &meta), part(2, &raw)].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
            "data": {"colour": "blue"},
        });
        assert_eq!(read(&body), Some(expected));
    }

    #[test]
    fn broken_messages_are_refused() {
        for body in [
            &b"k8s"[..],
            b"{}",
            b"k8s\0\x0a\xff",
            b"k8s\0\x0a\x02\x0a",
            b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(read(body), None, "{body:?}");
        }
    }

    #[test]
    fn every_type_of_the_table_is_in_it() {
        let types = table()["types"].as_object().expect("a map");
        for field in types.values().flat_map(|fields| list(fields, "")) {
            let of = text(field, "/2").trim_start_matches(['*', '[', ']', '{', '}']);
            assert!(of.len() == 1 || types.contains_key(of), "{of}");
        }
    }
}
