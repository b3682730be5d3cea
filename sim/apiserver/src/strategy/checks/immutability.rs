//! Checks that fields do not change.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;

/// Checks that a field is unchanged. `pointer` is its JSON pointer, `field` its name in the error.
pub(crate) fn check_immutable(field: &str, pointer: &str, live: &Value, object: &Value) -> Option<FieldError> {
    let value = object.pointer(pointer);
    (live.pointer(pointer) != value).then(|| {
        let value = value.cloned().unwrap_or_default();
        FieldError::invalid(field, &value, "field is immutable")
    })
}

/// Checks that the data of a ConfigMap or Secret with `immutable: true` is unchanged. `emptied` is a field that the
/// request sets to an empty map; if the live object does not have it, that is a change, too.
pub(crate) fn check_immutable_data(live: &Value, object: &Value, emptied: Option<&str>) -> Vec<FieldError> {
    if live.get("immutable") != Some(&json!(true)) {
        return Vec::new();
    }
    let is_changed = |field: &&str| live.get(field) != object.get(field);
    let changed = ["immutable", "data", "binaryData"].into_iter().filter(is_changed);
    let added = emptied.filter(|field| live.get(field).is_none() && object.get(field).is_none());
    let detail = "field is immutable when `immutable` is set";
    changed.chain(added).map(|field| FieldError::forbidden(field, detail)).collect()
}
