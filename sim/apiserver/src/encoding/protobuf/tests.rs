//! What is written can be read again: every recorded object, and objects that are made up by the table.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::table::{Message, Of, table};
use super::{MAGIC, read, read_event, write, write_event};

fn part(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    [&[number << 3 | 2, length][..], content].concat()
}

fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [part(1, version.as_bytes()), part(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), part(1, &meta), part(2, raw), part(3, b""), part(4, b"")].concat()
}

/// A value without what a message cannot tell from nothing.
fn told(value: &Value) -> Value {
    let is_told = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), told(value)));
            Value::Object(fields.filter(|(_, value)| is_told(value)).collect())
        }
        Value::Array(list) => list.iter().map(told).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_message_is_read_by_its_numbers_and_what_is_not_set_is_left_out() {
    let names = [part(1, b"settings"), part(2, b""), part(3, b"default")].concat();
    let data = [part(1, b"colour"), part(2, b"blue")].concat();
    let raw = [part(1, &names), part(2, &data)].concat();
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
        "data": {"colour": "blue"},
    });
    assert_eq!(read(&body("v1", "ConfigMap", &raw)), Ok(expected));
}

#[test]
fn the_bytes_are_those_that_go_writes() {
    // As a real server wrote it, with what differs from run to run cut short.
    let metadata = [
        part(1, b"one"),
        part(2, b""),
        part(3, b"default"),
        part(4, b""),
        part(5, b"u"),
        part(6, b"206"),
        vec![0x38, 0],
        part(8, &[0x08, 0xc4, 0xfe, 0xe8, 0xd7, 0x06, 0x10, 0]),
    ];
    let pairs = [part(2, &[part(1, b"a"), part(2, b"")].concat()), part(2, &[part(1, b"b"), part(2, b"1")].concat())];
    let raw = [part(1, &metadata.concat()), pairs.concat()].concat();
    let metadata = json!({
        "name": "one", "namespace": "default", "uid": "u", "resourceVersion": "206",
        "creationTimestamp": "2026-11-15T23:24:52Z",
    });
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"b": "1", "a": ""}});
    assert_eq!(write(&object).expect("a built-in kind"), body("v1", "ConfigMap", &raw));
}

#[test]
fn broken_messages_are_refused_in_the_words_of_go() {
    let of = |raw: &[u8]| read(&body("v1", "ConfigMap", raw)).map_err(|error| error.why());
    let magic = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    for (answer, expected) in [
        (read(b"").map_err(|error| error.why()), "empty data"),
        (read(b"k8s\0").map_err(|error| error.why()), "empty body"),
        (read(b"{}").map_err(|error| error.why()), magic),
        (read(b"k8s\0\x0a\x09\x0a").map_err(|error| error.why()), "unexpected EOF"),
        (of(b"\x0a\x05\x0a"), "unexpected EOF"),
        (of(b"\x08\x01"), "proto: wrong wireType = 0 for field ObjectMeta"),
        (of(b"\x0c"), "proto: ConfigMap: wiretype end group for non-group"),
        (of(b"\x00"), "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (of(&[0xff; 12]), "proto: integer overflow"),
        (of(&part(1, &part(8, b"\x0a\x01\x01"))), "proto: wrong wireType = 2 for field Seconds"),
    ] {
        assert_eq!(answer, Err(expected.to_owned()));
    }
    assert!(of(&part(15, b"nobody knows this field")).is_ok());
}

#[test]
fn an_event_has_its_length_before_it_and_is_read_again() {
    let object = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410});
    let frame = write_event("ERROR", &object).expect("a status has a message");
    let (length, event) = frame.split_at(4);
    assert_eq!(u32::from_be_bytes(length.try_into().expect("four bytes")) as usize, event.len());
    assert_eq!(read_event(event), Ok(json!({"type": "ERROR", "object": object})));
    assert_eq!(write_event("ADDED", &json!({"kind": "Gadget", "apiVersion": "example.com/v1"})), None);
}

#[test]
fn managers_have_their_fields_in_the_order_of_paths() {
    let port = |number: u16| format!("k:{{\"port\":{number},\"protocol\":\"TCP\"}}");
    let names = [port(443), port(80), ".".to_owned()];
    let fields: Map<String, Value> = names.into_iter().map(|name| (name, json!({}))).collect();
    let managers = json!([{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}]);
    let object = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"managedFields": managers}});
    let written = write(&object).expect("a built-in kind");
    let at = |text: &str| written.windows(text.len()).position(|window| window == text.as_bytes()).expect("written");
    assert!(at("\".\"") < at("\\\"port\\\":80") && at("\\\"port\\\":80") < at("\\\"port\\\":443"));
}

fn recorded_objects(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(map) => {
            // Some steps keep only places of an answer.
            let is_whole = map.contains_key("metadata") && !map.keys().any(|name| name.starts_with('/'));
            if is_whole && write(value).is_some() {
                found.push(value.clone());
            }
            map.values().for_each(|value| recorded_objects(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| recorded_objects(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_recorded_answer_is_the_same_after_it_was_a_message() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/kubernetes/1.35/exchanges");
    let mut found = Vec::new();
    for file in std::fs::read_dir(directory).expect("recorded") {
        let text = std::fs::read_to_string(file.expect("readable").path()).expect("readable");
        let exchange: Value = serde_json::from_str(&text).expect("JSON");
        for step in exchange["steps"].as_array().into_iter().flatten() {
            recorded_objects(&step["response"]["body"], &mut found);
            recorded_objects(&step["events"], &mut found);
        }
    }
    assert!(found.len() > 500, "{}", found.len());
    for object in found {
        let written = write(&object).expect("looked at above");
        assert_eq!(read(&written).map(|read| told(&read)), Ok(told(&without_types(&object))));
    }
}

/// An object whose elements do not say what they are: a message says it once.
fn without_types(value: &Value) -> Value {
    let untyped = |element: &Value| {
        let mut element = without_types(element);
        element.as_object_mut().into_iter().for_each(|fields| fields.retain(|name, _| !TYPE.contains(&name.as_str())));
        element
    };
    let field = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("items" | "volumeClaimTemplates", Value::Array(list)) => (name.clone(), list.iter().map(untyped).collect()),
        (_, value) => (name.clone(), without_types(value)),
    };
    match value {
        Value::Object(map) => Value::Object(map.iter().map(field).collect()),
        Value::Array(list) => list.iter().map(without_types).collect(),
        other => other.clone(),
    }
}

const TYPE: [&str; 2] = ["apiVersion", "kind"];

/// A small generator, so that one number decides an object.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn message(&mut self, message: &Message, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in &message.fields {
            match &field.of {
                Of::Message(name) if field.name.is_empty() => {
                    object.extend(self.message(table().message(name), depth + 1));
                }
                // What is always in JSON is there, or it would come back as nothing.
                _ if !field.always && (depth > 6 || self.below(3) == 0) => {}
                of => drop(object.insert(field.name.clone(), self.value(of, depth))),
            }
        }
        object
    }

    fn value(&mut self, of: &Of, depth: usize) -> Value {
        let number = i64::try_from(self.below(1 << 31)).expect("31 bits") - (1 << 30);
        let number = if number == 0 { 1 } else { number };
        match of {
            Of::Optional(inner) => self.value(inner, depth),
            Of::List(inner) => (0..self.below(3)).map(|_| self.value(inner, depth + 1)).collect(),
            Of::Map(inner) => {
                let keys = ["", "a", "ä", "z/1"];
                let keys = keys.into_iter().take(usize::try_from(self.below(5)).expect("few"));
                Value::Object(keys.map(|key| (key.to_owned(), self.value(inner, depth + 1))).collect())
            }
            Of::Text => json!(["x", "eins", "zwölf\n"][usize::try_from(self.below(3)).expect("few")]),
            Of::Truth => json!(true),
            Of::Number => json!(number),
            Of::Fraction => json!(0.25),
            Of::Bytes => json!("AAE="),
            Of::Quantity => json!("1500m"),
            Of::IntOrString if number > 0 => json!("50%"),
            Of::IntOrString => json!(number),
            Of::Time => json!("2026-11-15T23:24:52Z"),
            Of::MicroTime => json!("2026-11-15T23:24:52.000120Z"),
            Of::Span => json!("30s"),
            Of::Any | Of::Owned => json!({"f:a": {".": {}, "f:b": {}}}),
            Of::Texts | Of::OneOrNames => json!(["a", "b"]),
            Of::OneOrMany | Of::OneOrTruth => json!({"type": "string"}),
            Of::Message(name) => Value::Object(self.message(table().message(name), depth + 1)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_object_of_any_kind_is_the_same_after_it_was_a_message(seed: u64) {
        let mut dice = Dice(seed);
        for (name, message) in table().all_kinds() {
            let mut parts = name.split('/');
            let mut part = || parts.next().unwrap_or_default();
            let (group, version, kind) = (part(), part(), part());
            let mut object = Value::Object(dice.message(message, 0));
            object["apiVersion"] = json!(crate::object::fields::api_version(group, version));
            object["kind"] = json!(kind);
            let written = write(&object).expect("it is of the table");
            prop_assert_eq!(read(&written).map(|read| told(&read)), Ok(told(&object)));
        }
    }

    #[test]
    fn no_bytes_are_too_much(bytes: Vec<u8>, kind in "ConfigMap|Pod|Deployment|Service") {
        let version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        let written = body(version, &kind, &bytes[..bytes.len().min(120)]);
        let _refused = read(&written);
    }
}
