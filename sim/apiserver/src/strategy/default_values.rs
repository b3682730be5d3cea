//! Setting absent fields of JSON values.

use serde_json::{Value, json};

/// Sets an absent field. A value that is not a map is left to validation.
pub(super) fn set_default(map: &mut Value, name: &str, value: Value) {
    if let Some(map) = map.as_object_mut() {
        let slot = map.entry(name).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value;
        }
    }
}

/// Sets a field that is absent or an empty string.
pub(super) fn set_default_if_empty(map: &mut Value, name: &str, text: &str) {
    if map.get(name).is_some_and(|value| value == "") {
        map[name] = Value::Null;
    }
    set_default(map, name, json!(text));
}

/// Sets an absent field of a map inside another, which is added if missing.
pub(super) fn set_default_in(map: &mut Value, inner: &str, name: &str, value: Value) {
    set_default(map, inner, json!({}));
    if let Some(inner) = map.get_mut(inner) {
        set_default(inner, name, value);
    }
}

/// Returns a field if it is a map.
pub(super) fn map_field<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    object.get_mut(name).filter(|value| value.is_object())
}
