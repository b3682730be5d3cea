//! The rules that the metadata of every object follows.

use serde_json::{Value, json};

use super::names::{qualified_mistakes, value_mistakes};
use crate::object::field_error::FieldError;
use crate::object::fields::{finalizers, group_version, list, text};
use crate::object::finalizers::{FOREGROUND, ORPHAN};
use crate::registry::resource::Resource;

/// The annotations of an object may be this large together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
/// Finalizers without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", ORPHAN, FOREGROUND];

pub(super) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    [labels(object), annotations(object), check_finalizers(resource, object), owners(object)].concat()
}

fn labels(object: &Value) -> Vec<FieldError> {
    let invalid = |text: &str, why: &String| FieldError::invalid("metadata.labels", &json!(text), why);
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let mut errors = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(qualified_mistakes(key).iter().map(|why| invalid(key, why)));
        errors.extend(value_mistakes(value).iter().map(|why| invalid(value, why)));
    }
    errors
}

fn annotations(object: &Value) -> Vec<FieldError> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        // Unlike those of labels, the keys may be written in capitals.
        let wrong = qualified_mistakes(&key.to_lowercase());
        errors.extend(wrong.iter().map(|why| {
            let why = why.replace("name part must consist", "a valid label key must consist");
            FieldError::invalid("metadata.annotations", &json!(key), &why)
        }));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX));
    }
    errors
}

fn check_finalizers(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let given = finalizers(object);
    let mut errors = Vec::new();
    for (index, finalizer) in given.iter().enumerate() {
        let wrong = qualified_mistakes(finalizer);
        errors.extend(wrong.iter().map(|why| FieldError::invalid("metadata.finalizers", &json!(finalizer), why)));
        if !resource.custom && !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), why));
        }
    }
    if given.contains(&ORPHAN) && given.contains(&FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid("metadata.finalizers", &json!(given), &why));
    }
    errors
}

fn owners(object: &Value) -> Vec<FieldError> {
    let owners = list(object, "/metadata/ownerReferences");
    let mut errors = Vec::new();
    for owner in owners {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &format!("/{field}")).is_empty() {
                let place = match field {
                    "apiVersion" => "metadata.ownerReferences.apiVersion".to_owned(),
                    other => format!("metadata.ownerReferences.{other}"),
                };
                let why = if field == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                errors.push(FieldError::invalid(place, &json!(""), why));
            }
        }
        let (group, version) = group_version(text(owner, "/apiVersion"));
        if text(owner, "/kind") == "Event" && matches!(group, "" | "events.k8s.io") {
            let why = format!("{group}/{version}, Kind=Event is disallowed from being an owner");
            errors.push(FieldError::invalid_text("metadata.ownerReferences", &shown(owner), &why));
        }
    }
    let controllers: Vec<&Value> =
        owners.iter().filter(|owner| owner.get("controller") == Some(&json!(true))).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let named = |owner: &Value| format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            named(first),
            named(second)
        );
        let all = format!("[{}]", owners.iter().map(shown).collect::<Vec<_>>().join(","));
        errors.push(FieldError::invalid_text("metadata.ownerReferences", &all, &why));
    }
    errors
}

/// An owner as Go writes it.
fn shown(owner: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields = order.iter().filter_map(|field| Some(format!("{field:?}:{}", owner.get(field)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
