//! Shapes for the tests, from schemas as a real server publishes them.

use serde_json::{Value, json};
use sindri_merge::Shape;

/// Returns the schema of a map of strings.
fn string_map() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn keyed(keys: &[&str], item: Value) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": item})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// Returns the shape of a reduced Deployment that has every type of list and map.
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

/// Returns the shape of a ConfigMap.
pub fn config_map() -> Shape {
    Shape::from_schema(&object(json!({"data": string_map(), "immutable": {"type": "boolean"}})))
}
