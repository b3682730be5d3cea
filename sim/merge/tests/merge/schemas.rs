//! Objects whose schema changed after their fields were recorded as owned.

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

fn granular() -> Shape {
    let item = json!({"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}});
    let parts =
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "items": item});
    shape(parts, json!({"type": "object", "additionalProperties": {"type": "string"}}))
}

fn atomic() -> Shape {
    let options =
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}});
    shape(json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object"}}), options)
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec})
}

fn fields(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("the object is tracked");
    entries.iter().find(|entry| entry["manager"] == manager).map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
}

#[test]
fn a_value_that_became_atomic_is_owned_as_a_whole() {
    let spec = object(json!({"parts": [{"id": "a", "size": 1}], "options": {"k": "v"}}));
    let live = apply(&granular(), None, spec, &writer("one"), false).expect("created");
    let granular_fields = json!({"f:spec": {
        "f:options": {"f:k": {}}, "f:parts": {"k:{\"id\":\"a\"}": {".": {}, "f:id": {}, "f:size": {}}},
    }});
    assert_eq!(fields(&live, "one"), granular_fields);
    // Another manager's write to another field still converts the first manager's fields.
    let mut labelled = live.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let live = track_update(&atomic(), Some(&live), &labelled, &writer("two")).expect("understood");
    assert_eq!(fields(&live, "one"), json!({"f:spec": {"f:options": {}, "f:parts": {}}}));
    let other = object(json!({"parts": [{"id": "b"}]}));
    let error = apply(&atomic(), Some(&live), other, &writer("three"), false).expect_err("the list is atomic");
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.parts");
    let nothing = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}});
    let gone = apply(&atomic(), Some(&live), nothing, &writer("one"), false).expect("its own");
    assert_eq!(gone.get("spec"), None, "no other manager owns it: {gone}");
}

#[test]
fn a_value_that_is_no_longer_atomic_keeps_its_owner() {
    let spec = object(json!({"parts": [{"id": "a", "size": 1}], "options": {"k": "v"}}));
    let live = apply(&atomic(), None, spec, &writer("one"), false).expect("created");
    let whole_fields = json!({"f:spec": {"f:options": {}, "f:parts": {}}});
    assert_eq!(fields(&live, "one"), whole_fields);
    let more = object(json!({"parts": [{"id": "b"}]}));
    let live = apply(&granular(), Some(&live), more, &writer("two"), false).expect("the other item has no owner");
    assert_eq!(live["spec"]["parts"], json!([{"id": "a", "size": 1}, {"id": "b"}]));
    assert_eq!(fields(&live, "one"), whole_fields, "it still owns the whole values");
}
