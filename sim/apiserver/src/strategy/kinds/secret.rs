//! Secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::registry::types::SchemaType;
use crate::strategy::checks::data::validate_data;
use crate::strategy::checks::immutability::{check_immutable, check_immutable_data};
use crate::strategy::{EmptyValue, Strategy};

pub(super) struct Secret;

impl Strategy for Secret {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        move_string_data(object);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        [validate_data(object), check_required_keys(object)].concat()
    }

    fn validate_update(&self, live: &Value, object: &Value, empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let emptied = empty_values.iter().map(|empty| empty.field).find(|field| *field == "data");
        let mut errors: Vec<FieldError> = check_immutable("type", "/type", live, object).into_iter().collect();
        errors.extend(check_immutable_data(live, object, emptied));
        errors
    }
}

/// Moves `stringData` to `data`, where it replaces existing values.
fn move_string_data(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(plain)) = map.remove("stringData") else { return };
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Some(data) = data.as_object_mut() {
        for (key, value) in plain {
            if let Some(value) = value.as_str() {
                data.insert(key, json!(STANDARD.encode(value)));
            }
        }
    }
}

/// Checks that a secret has the keys that its type requires.
fn check_required_keys(object: &Value) -> Vec<FieldError> {
    let required: &[&str] = match string_at(object, "/type") {
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    let missing = required.iter().filter(|key| object["data"].get(**key).is_none());
    missing.map(|key| FieldError::required(format!("data[{key}]"), "")).collect()
}
