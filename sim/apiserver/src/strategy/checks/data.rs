//! Checks the data of ConfigMaps and Secrets.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Maximum size of the data of a ConfigMap or a Secret.
const DATA_BYTES_MAX: usize = 1024 * 1024;

/// Checks the keys and the size of the data.
pub(crate) fn validate_data(object: &Value) -> Vec<FieldError> {
    let data = object.pointer("/data").and_then(Value::as_object);
    let valid = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let invalid = data.into_iter().flatten().filter(|(key, _)| !valid(key));
    let mut errors: Vec<FieldError> =
        invalid.map(|(key, _)| FieldError::invalid(format!("data[{key}]"), &json!(key), CONFIG_KEY)).collect();
    let binary = object.pointer("/binaryData").and_then(Value::as_object);
    let duplicates =
        data.into_iter().flatten().filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key)));
    let detail = "duplicate of key present in binaryData";
    errors.extend(duplicates.map(|(key, _)| FieldError::invalid(format!("data[{key}]"), &json!(key), detail)));
    let size: usize =
        data.into_iter().flatten().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX));
    }
    errors
}
