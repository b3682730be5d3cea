//! The shapes that the tests use, from schemas as a real server publishes them.

use serde_json::{Value, json};
use sindri_merge::Shape;

/// Texts under any names.
fn names() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn keyed(keys: &[&str], item: Value) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": item})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// As much of a Deployment as has lists and maps of every sort.
pub fn deployment() -> Shape {
    let port = object(json!({"containerPort": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}));
    let container = object(json!({
        "name": {"type": "string"}, "image": {"type": "string"}, "ports": keyed(&["containerPort", "protocol"], port),
    }));
    let pod = object(json!({"containers": keyed(&["name"], container)}));
    let selector = json!({"type": "object", "x-kubernetes-map-type": "atomic"});
    Shape::from_schema(&object(json!({"spec": object(json!({
        "replicas": {"type": "integer"}, "selector": selector, "template": object(json!({"spec": pod})),
        "args": {"type": "array", "items": {"type": "string"}},
    }))})))
}

/// A ConfigMap.
pub fn config_map() -> Shape {
    Shape::from_schema(&object(json!({"data": names(), "immutable": {"type": "boolean"}})))
}
