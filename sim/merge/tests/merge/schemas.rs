//! Objects whose schema has changed since their fields were owned.

use serde_json::{Value, json};
use sindri_merge::{Shape, Writer, apply, track_update};

fn writer(manager: &str) -> Writer<'_> {
    Writer { manager, api_version: "x/v1", subresource: "", now: "t", blank: &Value::Null }
}

fn shape(parts: Value, options: Value) -> Shape {
    Shape::from_schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "parts": parts, "options": options,
    }}}}))
}

fn apart() -> Shape {
    let item = json!({"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}});
    let parts =
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "items": item});
    shape(parts, json!({"type": "object", "additionalProperties": {"type": "string"}}))
}

fn in_one_piece() -> Shape {
    let options =
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}});
    shape(json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object"}}), options)
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec})
}

fn fields(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("it is tracked");
    entries.iter().find(|entry| entry["manager"] == manager).map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
}

#[test]
fn what_has_become_one_piece_is_owned_as_one_piece() {
    let spec = object(json!({"parts": [{"id": "a", "size": 1}], "options": {"k": "v"}}));
    let live = apply(&apart(), None, spec, &writer("one"), false).expect("made");
    let apart_fields = json!({"f:spec": {
        "f:options": {"f:k": {}}, "f:parts": {"k:{\"id\":\"a\"}": {".": {}, "f:id": {}, "f:size": {}}},
    }});
    assert_eq!(fields(&live, "one"), apart_fields);
    // Somebody else writes something else: the record of the first follows the schema all the same.
    let mut labelled = live.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let live = track_update(&in_one_piece(), Some(&live), &labelled, &writer("two")).expect("understood");
    assert_eq!(fields(&live, "one"), json!({"f:spec": {"f:options": {}, "f:parts": {}}}));
    let other = object(json!({"parts": [{"id": "b"}]}));
    let error = apply(&in_one_piece(), Some(&live), other, &writer("three"), false).expect_err("it is one piece");
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.parts");
    let nothing = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}});
    let gone = apply(&in_one_piece(), Some(&live), nothing, &writer("one"), false).expect("its own");
    assert_eq!(gone.get("spec"), None, "nobody else wants it: {gone}");
}

#[test]
fn what_is_taken_apart_now_was_owned_as_a_place() {
    let spec = object(json!({"parts": [{"id": "a", "size": 1}], "options": {"k": "v"}}));
    let live = apply(&in_one_piece(), None, spec, &writer("one"), false).expect("made");
    let one_piece = json!({"f:spec": {"f:options": {}, "f:parts": {}}});
    assert_eq!(fields(&live, "one"), one_piece);
    let more = object(json!({"parts": [{"id": "b"}]}));
    let live = apply(&apart(), Some(&live), more, &writer("two"), false).expect("another part is nobody's");
    assert_eq!(live["spec"]["parts"], json!([{"id": "a", "size": 1}, {"id": "b"}]));
    assert_eq!(fields(&live, "one"), one_piece, "it goes on owning the place");
}
