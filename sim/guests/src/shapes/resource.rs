//! Resources in the external API.

use serde_json::{Value, json};

use super::ownership::OwnershipScheme;
use super::records::NAMESPACE;
use crate::client::ResourceKind;
use crate::object::{name, text, uid};

/// Kind of a resource. The external API is a simulated API server too, and any kind will do.
pub const RESOURCE: ResourceKind = ResourceKind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
/// Annotation of a resource with the shape for which it was created. By itself it does not prove ownership.
pub const DECLARED_BY: &str = "guests.example.com/declared-by";

/// Returns the value of [`DECLARED_BY`] for a shape.
pub fn declared_by(shape: &Value) -> String {
    format!("{}/{}/{}", text(shape, "/metadata/namespace"), name(shape), uid(shape))
}

/// Returns the annotation [`DECLARED_BY`] of a resource, or an empty text.
pub(super) fn declarer(resource: &Value) -> &str {
    let annotations = resource.pointer("/metadata/annotations");
    annotations.and_then(|annotations| annotations[DECLARED_BY].as_str()).unwrap_or_default()
}

/// Returns the desired resource of a shape.
pub(super) fn desired_resource(scheme: &dyn OwnershipScheme, shape: &Value) -> Value {
    json!({
        "apiVersion": RESOURCE.api_version(),
        "kind": RESOURCE.kind,
        "metadata": {
            "name": scheme.resource_name(shape),
            "namespace": NAMESPACE,
            "labels": scheme.labels(),
            "annotations": {DECLARED_BY: declared_by(shape)},
        },
        "data": shape["spec"],
    })
}
