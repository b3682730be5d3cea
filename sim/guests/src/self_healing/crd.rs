//! The custom resources `Agent` and `ModelConfig`, and the Secret with a key.

use serde_json::{Value, json};

use crate::client::ResourceKind;

/// Kind of the custom resource that owns children.
pub const AGENT: ResourceKind =
    ResourceKind { group: "guests.example.com", version: "v1", kind: "Agent", plural: "agents" };
/// Kind of the custom resource to which agents refer.
pub const MODEL_CONFIG: ResourceKind =
    ResourceKind { group: "guests.example.com", version: "v1", kind: "ModelConfig", plural: "modelconfigs" };
/// Kind of the object to which a `ModelConfig` refers.
pub const SECRET: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Secret", plural: "secrets" };

/// Returns the CustomResourceDefinitions.
pub fn crds() -> [Value; 2] {
    let agent = json!({
        "type": "object",
        "required": ["image", "replicas", "modelConfig"],
        "properties": {
            "image": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 0},
            // Without a port there is no Service.
            "port": {"type": "integer", "minimum": 1},
            "modelConfig": {"type": "string"},
        },
    });
    let model_config = json!({
        "type": "object",
        "required": ["model", "secret"],
        "properties": {"model": {"type": "string"}, "secret": {"type": "string"}},
    });
    [crd(AGENT, "agent", &agent), crd(MODEL_CONFIG, "modelconfig", &model_config)]
}

fn crd(kind: ResourceKind, singular: &str, spec: &Value) -> Value {
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
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
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}
