//! Structural schemas of custom resources: pruning, defaults, and the rules on types and values.
//!
//! Left out on purpose: `pattern`, formats other than times, `oneOf` and its like.

use serde_json::{Map, Value, json};

use crate::error::FieldError;
use crate::rule::{Variables, evaluate};

/// What is never subject to the schema of an object.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn keeps_unknown(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true))
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

/// Removes the fields that the schema does not know, and names them.
pub(crate) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_below(schema, object, "", true, &mut unknown);
    unknown
}

fn prune_below(schema: &Value, value: &mut Value, path: &str, root: bool, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let any = keeps_unknown(schema) || schema.get("additionalProperties") == Some(&json!(true));
            let names: Vec<String> =
                map.keys().filter(|name| !(root && ENVELOPE.contains(&name.as_str()))).cloned().collect();
            for name in names {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match (property(schema, &name).or_else(|| additional(schema)), map.get_mut(&name)) {
                    (Some(rules), Some(child)) => prune_below(rules, child, &below, false, unknown),
                    (None, _) if !any => {
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

/// Removes the nulls of fields that cannot be null.
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

/// Sets the fields that are not there and have a default.
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

/// Everything that breaks a rule of the schema.
pub(crate) fn validate(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(map) = object.as_object() else {
        return errors;
    };
    let content: Map<String, Value> = map
        .iter()
        .filter(|(name, _)| !ENVELOPE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    check(schema, &Value::Object(content), "", &mut errors);
    let blocking = errors.iter().any(FieldError::is_blocking);
    duplicates(schema, object, "", &mut errors);
    if blocking && has_rules(schema) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        errors.push(FieldError::invalid("<nil>", &Value::Null, why));
    }
    errors
}

/// What the rules of a schema say about an object that is otherwise right. Rules about a change need the live object.
pub(crate) fn check_rules(schema: &Value, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_rules(schema) {
        rules_below(schema, live, object, "", &mut errors);
    }
    errors
}

fn rules_below(schema: &Value, live: Option<&Value>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let own = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    errors.extend(own.into_iter().flatten().filter_map(|rule| broken_rule(rule, live, value, path)));
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                if let Some(rules) = property(schema, name).or_else(|| additional(schema)) {
                    rules_below(rules, live.and_then(|live| live.get(name)), child, &join(path, name), errors);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                for (index, item) in list.iter().enumerate() {
                    rules_below(items, None, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn broken_rule(rule: &Value, live: Option<&Value>, value: &Value, path: &str) -> Option<FieldError> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut variables = Variables::from([("self", value.clone())]);
    if text("rule").contains("oldSelf") {
        variables.insert("oldSelf", live?.clone());
    }
    if evaluate(text("rule"), &variables)? != json!(false) {
        return None;
    }
    let said = evaluate(text("messageExpression"), &variables).and_then(|said| said.as_str().map(str::to_owned));
    let why = match (said, text("message")) {
        (Some(said), _) => said,
        (None, "") => format!("failed rule: {}", text("rule")),
        (None, message) => message.to_owned(),
    };
    let field = match (path, text("fieldPath")) {
        ("", below) => below.trim_start_matches('.').to_owned(),
        (path, below) => format!("{path}{below}"),
    };
    Some(match text("reason") {
        "FieldValueForbidden" => FieldError::forbidden(field, &why),
        "FieldValueRequired" => FieldError::required(field, &why),
        // A structure is not shown.
        _ if value.is_object() || value.is_array() => {
            FieldError { reason: "FieldValueInvalid", field, message: format!("Invalid value: {why}") }
        }
        _ => FieldError::invalid(field, value, &why),
    })
}

/// Whether a schema has rules anywhere.
fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("x-kubernetes-validations") || map.values().any(has_rules),
        Value::Array(list) => list.iter().any(has_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Elements that are twice in a set, or have a key that another has.
fn duplicates(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                if let Some(rules) = property(schema, name).or_else(|| additional(schema)) {
                    duplicates(rules, child, &join(path, name), errors);
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
                    duplicates(items, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && schema.get("nullable") == Some(&json!(true)) {
        return;
    }
    if !path.is_empty() && !has_type(schema, value) {
        let either = schema.get("x-kubernetes-int-or-string") == Some(&json!(true));
        let wanted =
            if either { "integer,string" } else { schema.get("type").and_then(Value::as_str).unwrap_or_default() };
        let found = type_name(value);
        let why = format!("{path} in body must be of type {wanted}: {found:?}");
        errors.push(FieldError::type_invalid(path, &json!(found), &why));
        return;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.contains(value)) {
        let supported: Vec<String> = choices.iter().map(Value::to_string).collect();
        errors.push(FieldError::unsupported(path, value, &supported));
    }
    bounds(schema, value, path, errors);
    if schema.get("format") == Some(&json!("date-time"))
        && value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_err())
    {
        let why = format!("{path} in body must be of type date-time: {value}");
        errors.push(FieldError::type_invalid(path, value, &why));
    }
    match value {
        Value::Object(map) => {
            if schema.get("x-kubernetes-embedded-resource") == Some(&json!(true)) {
                let missing = ["apiVersion", "kind"].into_iter().filter(|name| !map.contains_key(*name));
                errors.extend(missing.map(|name| FieldError::required(join(path, name), "")));
            }
            let required =
                schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            for name in required.filter(|name| !(map.contains_key(*name) || path.is_empty() && ENVELOPE.contains(name)))
            {
                errors.push(FieldError::required(join(path, name), ""));
            }
            for (name, child) in map {
                if let Some(rules) = property(schema, name).or_else(|| additional(schema)) {
                    check(rules, child, &join(path, name), errors);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                for (index, item) in list.iter().enumerate() {
                    check(items, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn bounds(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let shown = |name: &str| schema.get(name).map(Value::to_string).unwrap_or_default();
    let mut refuse =
        |why: String| errors.push(FieldError::invalid(path, value, &format!("{path} in body should {why}")));
    if let Some(number) = value.as_f64() {
        if limit("minimum").is_some_and(|minimum| number < minimum) {
            refuse(format!("be greater than or equal to {}", shown("minimum")));
        }
        if limit("maximum").is_some_and(|maximum| number > maximum) {
            refuse(format!("be less than or equal to {}", shown("maximum")));
        }
    }
    let size = |length: usize| u32::try_from(length).map_or(f64::INFINITY, f64::from);
    if let Some(text) = value.as_str() {
        let length = size(text.chars().count());
        if limit("minLength").is_some_and(|minimum| length < minimum) {
            refuse(format!("be at least {} chars long", shown("minLength")));
        }
        if limit("maxLength").is_some_and(|maximum| length > maximum) {
            refuse(format!("be at most {} chars long", shown("maxLength")));
        }
    }
    if let Some(list) = value.as_array() {
        if limit("minItems").is_some_and(|minimum| size(list.len()) < minimum) {
            refuse(format!("have at least {} items", shown("minItems")));
        }
        if limit("maxItems").is_some_and(|maximum| size(list.len()) > maximum) {
            let message = format!("Too many: {}: must have at most {} items", list.len(), shown("maxItems"));
            errors.push(FieldError { reason: "FieldValueTooMany", field: path.to_owned(), message });
        }
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if schema.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        return value.is_i64() || value.is_u64() || value.is_string();
    }
    match schema.get("type").and_then(Value::as_str) {
        None => true,
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        Some(wanted) => type_name(value) == wanted,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
