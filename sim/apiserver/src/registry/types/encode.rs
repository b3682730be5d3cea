//! Normalizes an object of a built-in kind to the form in which the server stores and returns it: as Go serializes its type.
//!
//! A struct that is not a pointer is always present, a required list without value is null, and empty optional fields are
//! omitted.

use serde_json::{Map, Value};

use super::field_form::{ALWAYS_PRESENT, AbsentValue};
use super::schema_type::SchemaType;
use super::value_type::ValueType;

/// Returns the empty object of a type: only the fields that are always present.
pub(crate) fn empty_object(schema_type: &SchemaType) -> Value {
    let mut value = Value::Object(Map::new());
    encode(schema_type, &mut value);
    value
}

/// Normalizes a stored object: empty lists that are always present become null.
pub(crate) fn normalize_stored(schema_type: Option<&SchemaType>, object: &mut Value) {
    let Some(schema_type) = schema_type else { return };
    for (_, field) in ALWAYS_PRESENT.iter().filter(|(name, _)| *name == schema_type.short_name) {
        if object.get(field).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            object[*field] = Value::Null;
        }
    }
}

/// Normalizes a decoded value in place.
pub(crate) fn encode(schema_type: &SchemaType, value: &mut Value) {
    match (schema_type.value_type, value) {
        (ValueType::Struct, Value::Object(map)) => encode_struct(schema_type, map),
        (ValueType::Map, Value::Object(map)) => {
            if let Some(values) = schema_type.element() {
                map.values_mut().for_each(|value| encode(values, value));
            }
        }
        (ValueType::List, Value::Array(list)) => {
            if let Some(items) = schema_type.element() {
                list.iter_mut().for_each(|item| encode(items, item));
            }
        }
        _ => {}
    }
}

fn encode_struct(schema_type: &SchemaType, map: &mut Map<String, Value>) {
    map.retain(|name, value| match schema_type.field(name) {
        Some(field) if field.form.is_omitted(value) => false,
        Some(field) => {
            encode(field.field_type(), value);
            true
        }
        None => !value.is_null(),
    });
    for field in &schema_type.fields {
        let fill = || match &field.form.if_absent {
            AbsentValue::Absent => None,
            AbsentValue::Value(value) => Some(value.clone()),
            AbsentValue::EmptyObject => Some(empty_object(field.field_type())),
        };
        if !matches!(field.form.if_absent, AbsentValue::Absent) && !map.contains_key(&field.name) {
            map.extend(fill().map(|value| (field.name.clone(), value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::types;
    use super::*;

    #[test]
    fn an_empty_deployment_has_its_embedded_structs() {
        let schema_type = types().find_kind("apps", "v1", "Deployment").expect("recorded");
        let expected = json!({
            "metadata": {}, "status": {},
            "spec": {"selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}},
        });
        assert_eq!(empty_object(schema_type), expected);
    }

    #[test]
    fn empty_optional_fields_are_omitted() {
        let schema_type = types().find_kind("", "v1", "ConfigMap").expect("recorded");
        let mut object = json!({"metadata": {"name": "a", "labels": {}}, "data": {}, "immutable": false});
        encode(schema_type, &mut object);
        assert_eq!(object, json!({"metadata": {"name": "a"}, "immutable": false}));
    }
}
