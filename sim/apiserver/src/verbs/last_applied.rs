//! The annotation of client-side apply: `kubectl apply --server-side` takes over the fields that `kubectl apply` wrote.

use serde_json::{Value, json};
use sindri_merge::{Conflict, Shape, compare};

use super::resource_request::ResourceRequest;
use crate::object::fields::{metadata, string_at};
use crate::registry::types::typed_merge;

/// Annotation in which client-side apply stores the configuration.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// JSON pointer to that annotation.
const ANNOTATION_POINTER: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
/// Field manager of `kubectl apply --server-side`. Applies of other managers ignore the annotation.
const KUBECTL: &str = "kubectl";
/// Maximum size of all annotations in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Returns the conflicts of an apply that client-side apply does not explain: those about fields that are not in the last
/// applied configuration, or whose values have changed since.
pub(super) fn unexplained_conflicts(
    request: &ResourceRequest<'_>,
    manager: &str,
    live: Option<&Value>,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let Some(live) = live.filter(|_| manager == KUBECTL) else { return conflicts };
    let Ok(configuration) = serde_json::from_str::<Value>(string_at(live, ANNOTATION_POINTER)) else {
        return conflicts;
    };
    let version = &request.target.version;
    let typed = version.typed.or(version.declared.as_ref());
    let is_typed = typed.is_none_or(|typed| typed_merge::find_errors(typed, &configuration).is_empty());
    if !is_typed || string_at(&configuration, "/apiVersion") != request.target.api_version() {
        return conflicts;
    }
    let is_unexplained = is_changed_since(&version.shape, &configuration, live);
    conflicts.into_iter().filter(is_unexplained).collect()
}

/// Returns a predicate: true for a conflict about a field that is absent from a configuration, or differs from it in the live object.
fn is_changed_since(shape: &Shape, configuration: &Value, live: &Value) -> impl Fn(&Conflict) -> bool + use<> {
    let changes = compare(shape, configuration, live);
    let unchanged = shape
        .fields_of(configuration)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    move |conflict| !unchanged.contains(&conflict.path)
}

/// Updates the annotation of an object, if it has one, to the configuration that `kubectl apply --server-side` applied.
pub(super) fn update_annotation(manager: &str, applied: &Value, merged: &mut Value) {
    if manager != KUBECTL || string_at(merged, ANNOTATION_POINTER).is_empty() {
        return;
    }
    let mut configuration = applied.clone();
    if let Some(annotations) = configuration.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{configuration}\n");
    let Some(annotations) = metadata(merged).get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.insert(ANNOTATION.to_owned(), json!(text));
    let size: usize = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}
