//! The custom resources `Shape` and `ShapeRef`.

use serde_json::{Map, Value, json};

use crate::client::ResourceKind;

/// Kind of a shape.
pub const SHAPE: ResourceKind =
    ResourceKind { group: "guests.example.com", version: "v1", kind: "Shape", plural: "shapes" };

/// Kind of a record that a shape has a resource in the external API.
pub const SHAPE_REF: ResourceKind =
    ResourceKind { group: "guests.example.com", version: "v1", kind: "ShapeRef", plural: "shaperefs" };

/// Returns the CustomResourceDefinitions.
pub fn crds() -> [Value; 2] {
    [crd(SHAPE, "shape", &["kind", "colour"]), crd(SHAPE_REF, "shaperef", &["shape", "resource"])]
}

/// Returns the CustomResourceDefinition of a kind with these texts in its spec.
fn crd(kind: ResourceKind, singular: &str, fields: &[&str]) -> Value {
    let fields: Map<String, Value> = fields.iter().map(|field| ((*field).into(), json!({"type": "string"}))).collect();
    let spec = json!({"type": "object", "properties": fields});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, kind.group)},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": singular},
            "versions": [{
                "name": kind.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "subresources": {"status": {}},
            }],
        },
    })
}
