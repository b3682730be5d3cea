//! Validates values against the keywords of a schema: type, bounds, pattern, format, and logical combinations.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use sindri_cel::{Pattern, PatternError};

use super::cel_rules::{find_correlated, list_keys};
use super::formats;
use crate::object::field_error::FieldError;

/// Fields of an object that the schema does not cover.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// Path of the object itself in errors.
const ROOT: &str = "<nil>";
/// Integers up to this are exact in a float.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// Maximum number of cached patterns.
const PATTERNS_MAX: usize = 256;

/// A value with its path, and its old value if that is known: unchanged values may stay invalid (ratcheting).
#[derive(Clone, Copy)]
pub(super) struct ValueContext<'a> {
    pub(super) value: &'a Value,
    pub(super) before: Option<&'a Value>,
    pub(super) path: &'a str,
}

/// Adds all errors of a value.
pub(super) fn check(schema: &Value, context: ValueContext<'_>, errors: &mut Vec<FieldError>) {
    let ValueContext { value, path, .. } = context;
    if context.before == Some(value) || value.is_null() && flag(schema, "nullable") {
        return;
    }
    if !path.is_empty() && !has_type(schema, value) {
        errors.push(type_error(schema, value, path));
    }
    if !value.is_null() {
        check_combinations(schema, value, path, errors);
    }
    match value {
        Value::Number(_) => check_number(schema, value, path, errors),
        Value::String(text) => check_string(schema, value, text, path, errors),
        Value::Array(list) => check_array(schema, context, list, errors),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    check_enum(schema, value, path, errors);
    if let Value::Object(map) = value {
        check_object(schema, context, map, errors);
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&json!(true))
}

fn type_error(schema: &Value, value: &Value, path: &str) -> FieldError {
    let expected = match flag(schema, "x-kubernetes-int-or-string") {
        true => "integer,string",
        false => schema.get("type").and_then(Value::as_str).unwrap_or_default(),
    };
    let actual = type_name(value);
    let detail = format!("{path} in body must be of type {expected}: {actual:?}");
    FieldError::type_invalid(path, &json!(actual), &detail)
}

fn check_enum(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.contains(value)) else {
        return;
    };
    let format_choice =
        |choice: &Value| if choice.is_string() { choice.to_string() } else { json!(choice.to_string()).to_string() };
    let supported: Vec<String> = choices.iter().map(format_choice).collect();
    errors.push(FieldError::unsupported(path, value, &supported));
}

fn should_error(value: &Value, path: &str, detail: &str) -> FieldError {
    FieldError::invalid(path, value, &format!("{path} in body should {detail}"))
}

fn check_number(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let Some(number) = value.as_f64() else { return };
    // Like Go, truncates the bounds of integers.
    let bound = |bound: f64| if value.is_i64() { bound.trunc() } else { bound };
    if let Some(minimum) = limit("minimum").map(bound) {
        let is_strict = flag(schema, "exclusiveMinimum");
        if number < minimum || is_strict && number == minimum {
            let relation = if is_strict { "greater than" } else { "greater than or equal to" };
            errors.push(should_error(value, path, &format!("be {relation} {minimum}")));
        }
    }
    if let Some(maximum) = limit("maximum").map(bound) {
        let is_strict = flag(schema, "exclusiveMaximum");
        if number > maximum || is_strict && number == maximum {
            let relation = if is_strict { "less than" } else { "less than or equal to" };
            errors.push(should_error(value, path, &format!("be {relation} {maximum}")));
        }
    }
    if let Some(factor) = limit("multipleOf").map(bound) {
        if factor <= 0.0 {
            let detail = format!("factor MultipleOf declared for {path} must be positive: {factor}");
            errors.push(FieldError::invalid_text(path, &factor.to_string(), &detail));
        } else if (number / factor).fract() != 0.0 {
            errors.push(should_error(value, path, &format!("be a multiple of {factor}")));
        }
    }
}

/// Returns a limit that the schema declares.
fn limit(schema: &Value, name: &str) -> Option<usize> {
    schema.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
}

fn check_string(schema: &Value, value: &Value, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    errors.extend(check_length_and_pattern(schema, value, text, path));
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    if formats::matches_format(format, text) == Some(false) {
        let detail = format!("{path} in body must be of type {format}: {value}");
        errors.push(FieldError::type_invalid(path, value, &detail));
    }
}

/// Compiles a pattern, or returns it from the cache.
fn compile_cached(pattern: &str) -> Result<Pattern, PatternError> {
    static CACHE: Mutex<BTreeMap<String, Pattern>> = Mutex::new(BTreeMap::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cached) = cache.get(pattern) {
        return Ok(cached.clone());
    }
    let compiled = Pattern::new(pattern)?;
    if cache.len() < PATTERNS_MAX {
        cache.insert(pattern.to_owned(), compiled.clone());
    }
    Ok(compiled)
}

/// Returns the first error of length and pattern.
fn check_length_and_pattern(schema: &Value, value: &Value, text: &str, path: &str) -> Option<FieldError> {
    let length = text.chars().count();
    if let Some(max) = limit(schema, "maxLength").filter(|max| length > *max) {
        return Some(FieldError::too_long(path, max));
    }
    if let Some(min) = limit(schema, "minLength").filter(|min| length < *min) {
        return Some(should_error(value, path, &format!("be at least {min} chars long")));
    }
    let pattern = schema.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty())?;
    match compile_cached(pattern) {
        Ok(compiled) if compiled.is_in(text) => None,
        Ok(_) => Some(should_error(value, path, &format!("match '{pattern}'"))),
        Err(error) => Some(should_error(value, path, &format!("match '{pattern}, but pattern is invalid: {error}'"))),
    }
}

fn too_many_error(path: &str, count: usize, max: usize) -> FieldError {
    let message = format!("Too many: {count}: must have at most {max} items");
    FieldError { reason: "FieldValueTooMany", field: path.to_owned(), message }
}

fn check_array(schema: &Value, context: ValueContext<'_>, list: &[Value], errors: &mut Vec<FieldError>) {
    let path = context.path;
    if let Some(min) = limit(schema, "minItems").filter(|min| list.len() < *min) {
        errors.push(should_error(&json!(list.len()), path, &format!("have at least {min} items")));
    }
    if let Some(max) = limit(schema, "maxItems").filter(|max| list.len() > *max) {
        errors.push(too_many_error(path, list.len(), max));
    }
    let Some(items) = schema.get("items") else { return };
    let keys = list_keys(schema);
    for (index, value) in list.iter().enumerate() {
        let before = find_correlated(keys.as_deref(), context.before, value);
        check(items, ValueContext { value, before, path: &format!("{path}[{index}]") }, errors);
    }
}

fn check_object(schema: &Value, context: ValueContext<'_>, map: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let path = context.path;
    if let Some(min) = limit(schema, "minProperties").filter(|min| map.len() < *min) {
        errors.push(should_error(&json!(map.len()), path, &format!("have at least {min} properties")));
        return;
    }
    if let Some(max) = limit(schema, "maxProperties").filter(|max| map.len() > *max) {
        errors.push(too_many_error(path, map.len(), max));
        return;
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        check_embedded(map, path, errors);
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required.filter(|name| !(map.contains_key(*name) || path.is_empty() && ENVELOPE.contains(name))) {
        errors.push(FieldError::required(join(path, name), ""));
    }
    let additional = schema.get("additionalProperties").filter(|values| values.is_object());
    for (name, value) in map {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        if let Some(rules) = property.or(additional) {
            let before = context.before.and_then(|before| before.get(name));
            check(rules, ValueContext { value, before, path: &join(path, name) }, errors);
        }
    }
}

/// Checks that an embedded object has a kind and an API version.
fn check_embedded(map: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = join(path, name);
        match map.get(name).map(|value| value.as_str().unwrap_or_default()) {
            None => errors.push(FieldError::required(field, "")),
            Some("") => errors.push(FieldError::invalid(field, &json!(""), "must not be empty")),
            Some(version) if name == "apiVersion" && version.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {version}");
                errors.push(FieldError::invalid(field, &json!(version), &detail));
            }
            Some(_) => {}
        }
    }
}

/// Checks `anyOf`, `oneOf`, `allOf` and `not`.
fn check_combinations(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let context = ValueContext { value, before: None, path };
    let results = |name: &str| -> Vec<Vec<FieldError>> {
        let schemas = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        schemas
            .map(|schema| {
                let mut errors = Vec::new();
                check(schema, context, &mut errors);
                errors
            })
            .collect()
    };
    let reject = |requirement: &str| FieldError::invalid(ROOT, &json!(""), &format!("{path:?} must {requirement}"));
    let (any, one, all) = (results("anyOf"), results("oneOf"), results("allOf"));
    if !any.is_empty() && any.iter().all(|errors| !errors.is_empty()) {
        errors.push(reject("validate at least one schema (anyOf)"));
        errors.extend(any.into_iter().next().unwrap_or_default());
    }
    match one.iter().filter(|errors| errors.is_empty()).count() {
        _ if one.is_empty() => {}
        1 => {}
        0 => {
            errors.push(reject("validate one and only one schema (oneOf). Found none valid"));
            errors.extend(one.into_iter().next().unwrap_or_default());
        }
        more => {
            let requirement = format!("validate one and only one schema (oneOf). Found {more} valid alternatives");
            errors.push(reject(&requirement));
        }
    }
    let failed = all.iter().filter(|errors| !errors.is_empty()).count();
    if failed > 0 {
        let none = if failed == all.len() { ". None validated" } else { "" };
        errors.extend(all.into_iter().flatten());
        errors.push(reject(&format!("validate all the schemas (allOf){none}")));
    }
    if let Some(not) = schema.get("not") {
        let mut not_errors = Vec::new();
        check(not, context, &mut not_errors);
        if not_errors.is_empty() {
            errors.push(reject("not validate the schema (not)"));
        }
    }
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if flag(schema, "x-kubernetes-int-or-string") {
        return value.is_i64() || value.is_string();
    }
    match schema.get("type").and_then(Value::as_str) {
        None => true,
        Some("integer") => {
            let is_whole = |number: f64| number.fract() == 0.0 && number.abs() <= EXACT_MAX;
            value.is_i64() || value.as_f64().is_some_and(is_whole)
        }
        Some("number") => value.is_number(),
        Some(expected) => type_name(value) == expected,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
