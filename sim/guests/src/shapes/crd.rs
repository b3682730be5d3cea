//! The custom resource `Shape`.

use serde_json::{Value, json};

use crate::client::ResourceKind;

/// Kind of the custom resource.
pub const SHAPE: ResourceKind =
    ResourceKind { group: "guests.example.com", version: "v1", kind: "Shape", plural: "shapes" };

/// Returns its CustomResourceDefinition.
pub fn crd() -> Value {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"kind": text, "colour": text}});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", SHAPE.plural, SHAPE.group)},
        "spec": {
            "group": SHAPE.group,
            "scope": "Namespaced",
            "names": {"kind": SHAPE.kind, "plural": SHAPE.plural, "singular": "shape"},
            "versions": [{
                "name": SHAPE.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "subresources": {"status": {}},
            }],
        },
    })
}
