//! The custom resource `Database`.

use serde_json::{Value, json};

use crate::client::ResourceKind;

/// Kind of the custom resource.
pub const DATABASE: ResourceKind =
    ResourceKind { group: "guests.example.com", version: "v1", kind: "Database", plural: "databases" };

/// Returns its CustomResourceDefinition.
pub fn crd() -> Value {
    let spec = json!({
        "type": "object",
        "required": ["image", "replicas", "storage"],
        "properties": {
            "image": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 0},
            "storage": {"type": "string"},
        },
    });
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", DATABASE.plural, DATABASE.group)},
        "spec": {
            "group": DATABASE.group,
            "scope": "Namespaced",
            "names": {"kind": DATABASE.kind, "plural": DATABASE.plural, "singular": "database"},
            "versions": [{
                "name": DATABASE.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}
