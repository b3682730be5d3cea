//! The declaration, and what a thing looks like in the other API.

use serde_json::{Value, json};

use super::scheme::Scheme;
use crate::client::{Kind, name, text, uid};

/// The declaration.
pub const SHAPE: Kind = Kind { group: "guests.example.com", version: "v1", kind: "Shape", plural: "shapes" };
/// What a thing is in the other API: the simulated one is an API server too, and any kind will do.
pub const THING: Kind = Kind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
/// Where things are, and the controller's own records in the cluster.
pub const PLACE: &str = "default";
/// The note on a thing that says for which declaration it was made. By itself it proves nothing.
pub const DECLARED_BY: &str = "guests.example.com/declared-by";
/// The label of the controller's records.
pub const RECORD_LABEL: &str = "guests.example.com/record";

/// The definition of the declaration.
pub fn definition() -> Value {
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

/// The note for a declaration.
pub fn declared_by(declaration: &Value) -> String {
    format!("{}/{}/{}", text(declaration, "/metadata/namespace"), name(declaration), uid(declaration))
}

/// The note on a thing; empty if there is none.
pub(super) fn note_on(thing: &Value) -> &str {
    let annotations = thing.pointer("/metadata/annotations");
    annotations.and_then(|annotations| annotations[DECLARED_BY].as_str()).unwrap_or_default()
}

/// The thing of a declaration.
pub(super) fn thing(scheme: &dyn Scheme, declaration: &Value) -> Value {
    json!({
        "apiVersion": THING.api_version(),
        "kind": THING.kind,
        "metadata": {
            "name": scheme.thing_name(declaration),
            "namespace": PLACE,
            "labels": scheme.labels(),
            "annotations": {DECLARED_BY: declared_by(declaration)},
        },
        "data": declaration["spec"],
    })
}

/// How the record of a thing is called.
pub(super) fn record_name(thing: &str) -> String {
    format!("record.{thing}")
}

/// The record of a thing.
pub(super) fn record(thing: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": record_name(thing), "namespace": PLACE, "labels": {RECORD_LABEL: "shapes"}},
        "data": {"thing": thing},
    })
}
