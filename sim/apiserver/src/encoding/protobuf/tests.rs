//! Round trips of every recorded object and of generated objects of every kind.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::media::MAGIC;
use super::message_table::{FieldType, Message, table};
use super::{decode, decode_event, encode, encode_event};

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    [&[number << 3 | 2, length][..], content].concat()
}

fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat()
}

/// Removes nulls and empty lists and maps, which a message does not distinguish from absence.
fn without_empty(value: &Value) -> Value {
    let is_kept = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(fields.filter(|(_, value)| is_kept(value)).collect())
        }
        Value::Array(list) => list.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

#[test]
fn fields_are_decoded_by_number_and_unset_ones_are_omitted() {
    let names = [field(1, b"settings"), field(2, b""), field(3, b"default")].concat();
    let data = [field(1, b"colour"), field(2, b"blue")].concat();
    let raw = [field(1, &names), field(2, &data)].concat();
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
        "data": {"colour": "blue"},
    });
    assert_eq!(decode(&body("v1", "ConfigMap", &raw)), Ok(expected));
}

#[test]
fn encoded_bytes_equal_those_of_go() {
    // As encoded by a real server, with the values that differ between runs shortened.
    let metadata = [
        field(1, b"one"),
        field(2, b""),
        field(3, b"default"),
        field(4, b""),
        field(5, b"u"),
        field(6, b"206"),
        vec![0x38, 0],
        field(8, &[0x08, 0xc4, 0xfe, 0xe8, 0xd7, 0x06, 0x10, 0]),
    ];
    let pairs =
        [field(2, &[field(1, b"a"), field(2, b"")].concat()), field(2, &[field(1, b"b"), field(2, b"1")].concat())];
    let raw = [field(1, &metadata.concat()), pairs.concat()].concat();
    let metadata = json!({
        "name": "one", "namespace": "default", "uid": "u", "resourceVersion": "206",
        "creationTimestamp": "2026-11-15T23:24:52Z",
    });
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"b": "1", "a": ""}});
    assert_eq!(encode(&object).expect("a built-in kind"), body("v1", "ConfigMap", &raw));
}

#[test]
fn malformed_messages_are_rejected_with_the_errors_of_go() {
    let decode_content = |raw: &[u8]| decode(&body("v1", "ConfigMap", raw)).map_err(|error| error.into_message());
    let magic = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    for (result, expected) in [
        (decode(b"").map_err(|error| error.into_message()), "empty data"),
        (decode(b"k8s\0").map_err(|error| error.into_message()), "empty body"),
        (decode(b"{}").map_err(|error| error.into_message()), magic),
        (decode(b"k8s\0\x0a\x09\x0a").map_err(|error| error.into_message()), "unexpected EOF"),
        (decode_content(b"\x0a\x05\x0a"), "unexpected EOF"),
        (decode_content(b"\x08\x01"), "proto: wrong wireType = 0 for field ObjectMeta"),
        (decode_content(b"\x0c"), "proto: ConfigMap: wiretype end group for non-group"),
        (decode_content(b"\x00"), "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (decode_content(&[0xff; 12]), "proto: integer overflow"),
        (decode_content(&field(1, &field(8, b"\x0a\x01\x01"))), "proto: wrong wireType = 2 for field Seconds"),
    ] {
        assert_eq!(result, Err(expected.to_owned()));
    }
    assert!(decode_content(&field(15, b"unknown field")).is_ok());
}

#[test]
fn an_event_has_a_length_prefix_and_round_trips() {
    let object = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410});
    let frame = encode_event("ERROR", &object).expect("a status has a message");
    let (length, event) = frame.split_at(4);
    assert_eq!(u32::from_be_bytes(length.try_into().expect("four bytes")) as usize, event.len());
    assert_eq!(decode_event(event), Ok(json!({"type": "ERROR", "object": object})));
    assert_eq!(encode_event("ADDED", &json!({"kind": "Gadget", "apiVersion": "example.com/v1"})), None);
}

#[test]
fn managed_fields_are_encoded_in_path_order() {
    let port = |number: u16| format!("k:{{\"port\":{number},\"protocol\":\"TCP\"}}");
    let names = [port(443), port(80), ".".to_owned()];
    let fields: Map<String, Value> = names.into_iter().map(|name| (name, json!({}))).collect();
    let managers = json!([{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}]);
    let object = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"managedFields": managers}});
    let encoded = encode(&object).expect("a built-in kind");
    let position_of =
        |text: &str| encoded.windows(text.len()).position(|window| window == text.as_bytes()).expect("encoded");
    assert!(
        position_of("\".\"") < position_of("\\\"port\\\":80")
            && position_of("\\\"port\\\":80") < position_of("\\\"port\\\":443")
    );
}

fn recorded_objects(value: &Value, objects: &mut Vec<Value>) {
    match value {
        Value::Object(map) => {
            // Some recorded steps hold only selected paths of a response.
            let is_whole = map.contains_key("metadata") && !map.keys().any(|name| name.starts_with('/'));
            if is_whole && encode(value).is_some() {
                objects.push(value.clone());
            }
            map.values().for_each(|value| recorded_objects(value, objects));
        }
        Value::Array(list) => list.iter().for_each(|value| recorded_objects(value, objects)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_recorded_response_round_trips() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/kubernetes/1.35/exchanges");
    let mut objects = Vec::new();
    for file in std::fs::read_dir(directory).expect("recorded") {
        let text = std::fs::read_to_string(file.expect("readable").path()).expect("readable");
        let exchange: Value = serde_json::from_str(&text).expect("JSON");
        for step in exchange["steps"].as_array().into_iter().flatten() {
            recorded_objects(&step["response"]["body"], &mut objects);
            recorded_objects(&step["events"], &mut objects);
        }
    }
    assert!(objects.len() > 500, "{}", objects.len());
    for object in objects {
        let encoded = encode(&object).expect("only encodable objects were collected");
        assert_eq!(decode(&encoded).map(|decoded| without_empty(&decoded)), Ok(without_empty(&without_types(&object))));
    }
}

/// Removes `apiVersion` and `kind` from list elements, which a message does not encode.
fn without_types(value: &Value) -> Value {
    let untyped = |element: &Value| {
        let mut element = without_types(element);
        element
            .as_object_mut()
            .into_iter()
            .for_each(|fields| fields.retain(|name, _| !TYPE_FIELDS.contains(&name.as_str())));
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

const TYPE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// A generator whose sequence is fixed by its seed.
struct ObjectGenerator(u64);

impl ObjectGenerator {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn message(&mut self, message: &Message, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in &message.fields {
            match &field.field_type {
                FieldType::Message(name) if field.name.is_empty() => {
                    object.extend(self.message(table().message(name), depth + 1));
                }
                // Fields that JSON always has are set, because they are decoded even if they are absent.
                _ if !field.is_always_present && (depth > 6 || self.below(3) == 0) => {}
                field_type => drop(object.insert(field.name.clone(), self.value(field_type, depth))),
            }
        }
        object
    }

    fn value(&mut self, field_type: &FieldType, depth: usize) -> Value {
        let number = i64::try_from(self.below(1 << 31)).expect("31 bits") - (1 << 30);
        let number = if number == 0 { 1 } else { number };
        match field_type {
            FieldType::Optional(inner) => self.value(inner, depth),
            FieldType::List(inner) => (0..self.below(3)).map(|_| self.value(inner, depth + 1)).collect(),
            FieldType::Map(inner) => {
                let keys = ["", "a", "ä", "z/1"];
                let keys = keys.into_iter().take(usize::try_from(self.below(5)).expect("few"));
                Value::Object(keys.map(|key| (key.to_owned(), self.value(inner, depth + 1))).collect())
            }
            FieldType::String => json!(["x", "eins", "zwölf\n"][usize::try_from(self.below(3)).expect("few")]),
            FieldType::Bool => json!(true),
            FieldType::Integer => json!(number),
            FieldType::Float => json!(0.25),
            FieldType::Bytes => json!("AAE="),
            FieldType::Quantity => json!("1500m"),
            FieldType::IntOrString if number > 0 => json!("50%"),
            FieldType::IntOrString => json!(number),
            FieldType::Time => json!("2026-11-15T23:24:52Z"),
            FieldType::MicroTime => json!("2026-11-15T23:24:52.000120Z"),
            FieldType::Duration => json!("30s"),
            FieldType::RawJson | FieldType::FieldsV1 => json!({"f:a": {".": {}, "f:b": {}}}),
            FieldType::WrappedStrings | FieldType::SchemaOrStrings => json!(["a", "b"]),
            FieldType::SchemaOrSchemas | FieldType::SchemaOrBool => json!({"type": "string"}),
            FieldType::Message(name) => Value::Object(self.message(table().message(name), depth + 1)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_object_of_any_kind_round_trips(seed: u64) {
        let mut generator = ObjectGenerator(seed);
        for (name, message) in table().all_kinds() {
            let mut parts = name.split('/');
            let mut part = || parts.next().unwrap_or_default();
            let (group, version, kind) = (part(), part(), part());
            let mut object = Value::Object(generator.message(message, 0));
            object["apiVersion"] = json!(crate::object::fields::api_version(group, version));
            object["kind"] = json!(kind);
            let encoded = encode(&object).expect("the kind is in the table");
            prop_assert_eq!(decode(&encoded).map(|decoded| without_empty(&decoded)), Ok(without_empty(&object)));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>, kind in "ConfigMap|Pod|Deployment|Service") {
        let version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        let encoded = body(version, &kind, &bytes[..bytes.len().min(120)]);
        let _result = decode(&encoded);
    }
}
