//! What the keywords of a schema say about a value: its type, its bounds, its form, and which of several schemas it fits.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use sindri_cel::{Pattern, PatternError};

use super::cel_rules::{correlated, list_keys};
use super::formats;
use crate::object::field_error::FieldError;

/// What is never subject to the schema of an object.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// The path of the object itself.
const ROOT: &str = "<nil>";
/// Whole numbers beyond this are no longer told apart when they are written with a fraction.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// How many patterns are remembered.
const PATTERNS_MAX: usize = 256;

/// A value with its place, and the one before it as far as it can be told: what did not change may stay as it is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) value: &'a Value,
    pub(super) before: Option<&'a Value>,
    pub(super) path: &'a str,
}

/// Everything that is wrong with a value.
pub(super) fn check(schema: &Value, place: Place<'_>, errors: &mut Vec<FieldError>) {
    let Place { value, path, .. } = place;
    if place.before == Some(value) || value.is_null() && flag(schema, "nullable") {
        return;
    }
    if !path.is_empty() && !has_type(schema, value) {
        errors.push(wrong_type(schema, value, path));
    }
    if !value.is_null() {
        alternatives(schema, value, path, errors);
    }
    match value {
        Value::Number(_) => number(schema, value, path, errors),
        Value::String(text) => string(schema, value, text, path, errors),
        Value::Array(list) => array(schema, place, list, errors),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    choice(schema, value, path, errors);
    if let Value::Object(map) = value {
        object(schema, place, map, errors);
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&json!(true))
}

fn wrong_type(schema: &Value, value: &Value, path: &str) -> FieldError {
    let wanted = match flag(schema, "x-kubernetes-int-or-string") {
        true => "integer,string",
        false => schema.get("type").and_then(Value::as_str).unwrap_or_default(),
    };
    let found = type_name(value);
    let why = format!("{path} in body must be of type {wanted}: {found:?}");
    FieldError::type_invalid(path, &json!(found), &why)
}

fn choice(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.contains(value)) else {
        return;
    };
    let shown =
        |choice: &Value| if choice.is_string() { choice.to_string() } else { json!(choice.to_string()).to_string() };
    let supported: Vec<String> = choices.iter().map(shown).collect();
    errors.push(FieldError::unsupported(path, value, &supported));
}

fn refusal(value: &Value, path: &str, why: &str) -> FieldError {
    FieldError::invalid(path, value, &format!("{path} in body should {why}"))
}

fn number(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let Some(number) = value.as_f64() else { return };
    // The bounds of a whole number are whole numbers too.
    let bound = |bound: f64| if value.is_i64() { bound.trunc() } else { bound };
    if let Some(minimum) = limit("minimum").map(bound) {
        let is_strict = flag(schema, "exclusiveMinimum");
        if number < minimum || is_strict && number == minimum {
            let words = if is_strict { "greater than" } else { "greater than or equal to" };
            errors.push(refusal(value, path, &format!("be {words} {minimum}")));
        }
    }
    if let Some(maximum) = limit("maximum").map(bound) {
        let is_strict = flag(schema, "exclusiveMaximum");
        if number > maximum || is_strict && number == maximum {
            let words = if is_strict { "less than" } else { "less than or equal to" };
            errors.push(refusal(value, path, &format!("be {words} {maximum}")));
        }
    }
    if let Some(factor) = limit("multipleOf").map(bound) {
        if factor <= 0.0 {
            let why = format!("factor MultipleOf declared for {path} must be positive: {factor}");
            errors.push(FieldError::invalid_text(path, &factor.to_string(), &why));
        } else if (number / factor).fract() != 0.0 {
            errors.push(refusal(value, path, &format!("be a multiple of {factor}")));
        }
    }
}

/// How many there may be, as a schema says it.
fn limit(schema: &Value, name: &str) -> Option<usize> {
    schema.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
}

fn string(schema: &Value, value: &Value, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    errors.extend(form(schema, value, text, path));
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    if formats::fits(format, text) == Some(false) {
        let why = format!("{path} in body must be of type {format}: {value}");
        errors.push(FieldError::type_invalid(path, value, &why));
    }
}

/// Reads a pattern, and remembers it: the same few are asked for again and again.
fn compiled(pattern: &str) -> Result<Pattern, PatternError> {
    static KNOWN: Mutex<BTreeMap<String, Pattern>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(pattern) {
        return Ok(found.clone());
    }
    let read = Pattern::new(pattern)?;
    if known.len() < PATTERNS_MAX {
        known.insert(pattern.to_owned(), read.clone());
    }
    Ok(read)
}

/// The first of length and pattern that is wrong.
fn form(schema: &Value, value: &Value, text: &str, path: &str) -> Option<FieldError> {
    let length = text.chars().count();
    if let Some(most) = limit(schema, "maxLength").filter(|most| length > *most) {
        return Some(FieldError::too_long(path, most));
    }
    if let Some(least) = limit(schema, "minLength").filter(|least| length < *least) {
        return Some(refusal(value, path, &format!("be at least {least} chars long")));
    }
    let pattern = schema.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty())?;
    match compiled(pattern) {
        Ok(known) if known.is_in(text) => None,
        Ok(_) => Some(refusal(value, path, &format!("match '{pattern}'"))),
        Err(error) => Some(refusal(value, path, &format!("match '{pattern}, but pattern is invalid: {error}'"))),
    }
}

fn too_many(path: &str, found: usize, most: usize) -> FieldError {
    let message = format!("Too many: {found}: must have at most {most} items");
    FieldError { reason: "FieldValueTooMany", field: path.to_owned(), message }
}

fn array(schema: &Value, place: Place<'_>, list: &[Value], errors: &mut Vec<FieldError>) {
    let path = place.path;
    if let Some(least) = limit(schema, "minItems").filter(|least| list.len() < *least) {
        errors.push(refusal(&json!(list.len()), path, &format!("have at least {least} items")));
    }
    if let Some(most) = limit(schema, "maxItems").filter(|most| list.len() > *most) {
        errors.push(too_many(path, list.len(), most));
    }
    let Some(items) = schema.get("items") else { return };
    let keys = list_keys(schema);
    for (index, value) in list.iter().enumerate() {
        let before = correlated(keys.as_deref(), place.before, value);
        check(items, Place { value, before, path: &format!("{path}[{index}]") }, errors);
    }
}

fn object(schema: &Value, place: Place<'_>, map: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let path = place.path;
    if let Some(least) = limit(schema, "minProperties").filter(|least| map.len() < *least) {
        errors.push(refusal(&json!(map.len()), path, &format!("have at least {least} properties")));
        return;
    }
    if let Some(most) = limit(schema, "maxProperties").filter(|most| map.len() > *most) {
        errors.push(too_many(path, map.len(), most));
        return;
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        embedded(map, path, errors);
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required.filter(|name| !(map.contains_key(*name) || path.is_empty() && ENVELOPE.contains(name))) {
        errors.push(FieldError::required(join(path, name), ""));
    }
    let additional = schema.get("additionalProperties").filter(|values| values.is_object());
    for (name, value) in map {
        let own = schema.get("properties").and_then(|properties| properties.get(name));
        if let Some(rules) = own.or(additional) {
            let before = place.before.and_then(|before| before.get(name));
            check(rules, Place { value, before, path: &join(path, name) }, errors);
        }
    }
}

/// An object within an object says what it is.
fn embedded(map: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = join(path, name);
        match map.get(name).map(|value| value.as_str().unwrap_or_default()) {
            None => errors.push(FieldError::required(field, "")),
            Some("") => errors.push(FieldError::invalid(field, &json!(""), "must not be empty")),
            Some(version) if name == "apiVersion" && version.matches('/').count() > 1 => {
                let why = format!("unexpected GroupVersion string: {version}");
                errors.push(FieldError::invalid(field, &json!(version), &why));
            }
            Some(_) => {}
        }
    }
}

/// `anyOf`, `oneOf`, `allOf` and `not`.
fn alternatives(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let place = Place { value, before: None, path };
    let each = |name: &str| -> Vec<Vec<FieldError>> {
        let schemas = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        schemas
            .map(|schema| {
                let mut errors = Vec::new();
                check(schema, place, &mut errors);
                errors
            })
            .collect()
    };
    let refuse = |words: &str| FieldError::invalid(ROOT, &json!(""), &format!("{path:?} must {words}"));
    let (any, one, all) = (each("anyOf"), each("oneOf"), each("allOf"));
    if !any.is_empty() && any.iter().all(|errors| !errors.is_empty()) {
        errors.push(refuse("validate at least one schema (anyOf)"));
        errors.extend(any.into_iter().next().unwrap_or_default());
    }
    match one.iter().filter(|errors| errors.is_empty()).count() {
        _ if one.is_empty() => {}
        1 => {}
        0 => {
            errors.push(refuse("validate one and only one schema (oneOf). Found none valid"));
            errors.extend(one.into_iter().next().unwrap_or_default());
        }
        more => {
            let words = format!("validate one and only one schema (oneOf). Found {more} valid alternatives");
            errors.push(refuse(&words));
        }
    }
    let failed = all.iter().filter(|errors| !errors.is_empty()).count();
    if failed > 0 {
        let none = if failed == all.len() { ". None validated" } else { "" };
        errors.extend(all.into_iter().flatten());
        errors.push(refuse(&format!("validate all the schemas (allOf){none}")));
    }
    if let Some(not) = schema.get("not") {
        let mut found = Vec::new();
        check(not, place, &mut found);
        if found.is_empty() {
            errors.push(refuse("not validate the schema (not)"));
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
        Some(wanted) => type_name(value) == wanted,
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
