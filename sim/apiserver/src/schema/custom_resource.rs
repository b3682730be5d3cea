//! Applies structural schemas to custom resources: pruning, defaulting, validation, and duplicates in lists.

use serde_json::{Map, Value, json};

use super::values::{ValueContext, check, join};
use crate::object::field_error::FieldError;

/// Fields of an object that the schema does not cover.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Integers below this are exact in a float.
const EXACT_INTEGER_END: f64 = 9_007_199_254_740_992.0;

fn keeps_unknown(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true))
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

/// Removes unknown fields and returns their paths.
pub(crate) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_below(schema, object, "", true, &mut unknown);
    unknown
}

fn prune_below(schema: &Value, value: &mut Value, path: &str, root: bool, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let keeps_all = keeps_unknown(schema) || schema.get("additionalProperties") == Some(&json!(true));
            let names: Vec<String> =
                map.keys().filter(|name| !(root && ENVELOPE.contains(&name.as_str()))).cloned().collect();
            for name in names {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match (property(schema, &name).or_else(|| additional(schema)), map.get_mut(&name)) {
                    (Some(rules), Some(child)) => prune_below(rules, child, &below, false, unknown),
                    (None, _) if !keeps_all => {
                        map.remove(&name);
                        unknown.push(below);
                    }
                    (None, _) | (_, None) => {}
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                for (index, item) in list.iter_mut().enumerate() {
                    prune_below(items, item, &format!("{path}[{index}]"), false, unknown);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes null values of fields that are not nullable.
pub(crate) fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let keeps = |name: &str| {
                property(schema, name).is_some_and(|rules| rules.get("nullable") == Some(&json!(true)))
                    || property(schema, name).is_none() && keeps_unknown(schema)
            };
            map.retain(|name, value| !value.is_null() || keeps(name));
            for (name, child) in map.iter_mut() {
                if let Some(rules) = property(schema, name).or_else(|| additional(schema)) {
                    drop_nulls(rules, child);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                list.iter_mut().for_each(|item| drop_nulls(items, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Converts floats without a fraction to integers, as Go does.
pub(crate) fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < EXACT_INTEGER_END);
            if let (true, Some(whole)) = (number.is_f64(), whole) {
                *value = json!(whole as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(normalize_numbers),
        Value::Object(map) => map.values_mut().for_each(normalize_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Sets absent fields that have a default.
pub(crate) fn fill_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, rules) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if let (Some(default), false) = (rules.get("default"), map.contains_key(name)) {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, child) in map.iter_mut() {
                if let Some(rules) = property(schema, name).or_else(|| additional(schema)) {
                    fill_defaults(rules, child);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                list.iter_mut().for_each(|item| fill_defaults(items, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns all errors of a custom resource.
pub(crate) fn validate(schema: &Value, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(map) = object.as_object() else {
        return errors;
    };
    let content: Map<String, Value> = map
        .iter()
        .filter(|(name, _)| !ENVELOPE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let value = Value::Object(content);
    check(schema, ValueContext { value: &value, before: live, path: "" }, &mut errors);
    check_duplicates(schema, object, "", &mut errors);
    errors
}

/// True if a schema or a subschema has CEL rules.
pub(crate) fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("x-kubernetes-validations") || map.values().any(has_rules),
        Value::Array(list) => list.iter().any(has_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Checks sets and keyed lists for duplicates.
fn check_duplicates(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                if let Some(rules) = property(schema, name).or_else(|| additional(schema)) {
                    check_duplicates(rules, child, &join(path, name), errors);
                }
            }
        }
        Value::Array(list) => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let mut seen: Vec<Value> = Vec::new();
            for (index, item) in list.iter().enumerate() {
                let identity = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                    Some("set") => item.clone(),
                    Some("map") => {
                        let names = keys.into_iter().flatten().filter_map(Value::as_str);
                        names.filter_map(|name| Some((name.to_owned(), item.get(name)?.clone()))).collect()
                    }
                    _ => break,
                };
                if seen.contains(&identity) {
                    errors.push(FieldError::duplicate(format!("{path}[{index}]"), &identity.to_string()));
                }
                seen.push(identity);
            }
            if let Some(items) = schema.get("items") {
                for (index, item) in list.iter().enumerate() {
                    check_duplicates(items, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
