//! Validates the metadata of every object.

use serde_json::{Value, json};

use super::names::{label_value_errors, qualified_name_errors};
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, finalizers, group_version, is_deleting, string_at};
use crate::object::finalizers::{FOREGROUND, ORPHAN};
use crate::registry::resource::Resource;

/// Maximum total size of an object's annotations.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// Finalizers without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", ORPHAN, FOREGROUND];

/// Returns the errors of the metadata of an object.
pub(crate) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    [check_labels(object), check_annotations(object), check_finalizers(resource, object), check_owners(object)].concat()
}

/// Returns all errors of a change of metadata.
pub(crate) fn validate_update(live: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_deleting(live) {
        let existing = finalizers(live);
        let added: Vec<&str> =
            finalizers(object).into_iter().filter(|finalizer| !existing.contains(finalizer)).collect();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            // The real server checks twice.
            let error = FieldError::forbidden("metadata.finalizers", &detail);
            errors.extend([error.clone(), error]);
        }
    }
    errors
}

fn check_labels(object: &Value) -> Vec<FieldError> {
    let invalid = |text: &str, detail: &String| FieldError::invalid("metadata.labels", &json!(text), detail);
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let mut errors = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(qualified_name_errors(key).iter().map(|detail| invalid(key, detail)));
        errors.extend(label_value_errors(value).iter().map(|detail| invalid(value, detail)));
    }
    errors
}

fn check_annotations(object: &Value) -> Vec<FieldError> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        // Unlike label keys, annotation keys may have capitals.
        let details = qualified_name_errors(&key.to_lowercase());
        errors.extend(details.iter().map(|detail| {
            let detail = detail.replace("name part must consist", "a valid label key must consist");
            FieldError::invalid("metadata.annotations", &json!(key), &detail)
        }));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX));
    }
    errors
}

fn check_finalizers(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let finalizers_of_object = finalizers(object);
    let mut errors = Vec::new();
    for (index, finalizer) in finalizers_of_object.iter().enumerate() {
        let details = qualified_name_errors(finalizer);
        errors
            .extend(details.iter().map(|detail| FieldError::invalid("metadata.finalizers", &json!(finalizer), detail)));
        if !resource.custom && !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), detail));
        }
    }
    if finalizers_of_object.contains(&ORPHAN) && finalizers_of_object.contains(&FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid("metadata.finalizers", &json!(finalizers_of_object), &detail));
    }
    errors
}

fn check_owners(object: &Value) -> Vec<FieldError> {
    let owners = array_at(object, "/metadata/ownerReferences");
    let mut errors = Vec::new();
    for owner in owners {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if string_at(owner, &format!("/{field}")).is_empty() {
                let path = match field {
                    "apiVersion" => "metadata.ownerReferences.apiVersion".to_owned(),
                    other => format!("metadata.ownerReferences.{other}"),
                };
                let detail = if field == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                errors.push(FieldError::invalid(path, &json!(""), detail));
            }
        }
        let (group, version) = group_version(string_at(owner, "/apiVersion"));
        if string_at(owner, "/kind") == "Event" && matches!(group, "" | "events.k8s.io") {
            let detail = format!("{group}/{version}, Kind=Event is disallowed from being an owner");
            errors.push(FieldError::invalid_text("metadata.ownerReferences", &format_owner(owner), &detail));
        }
    }
    let controllers: Vec<&Value> =
        owners.iter().filter(|owner| owner.get("controller") == Some(&json!(true))).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let named = |owner: &Value| format!("{}/{}", string_at(owner, "/kind"), string_at(owner, "/name"));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            named(first),
            named(second)
        );
        let all = format!("[{}]", owners.iter().map(format_owner).collect::<Vec<_>>().join(","));
        errors.push(FieldError::invalid_text("metadata.ownerReferences", &all, &detail));
    }
    errors
}

/// Formats an owner reference as Go prints it.
fn format_owner(owner: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields = order.iter().filter_map(|field| Some(format!("{field:?}:{}", owner.get(field)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
