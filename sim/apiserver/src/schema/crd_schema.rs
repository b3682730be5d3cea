//! What a schema of a definition may say at all, and what its defaults and rules must be.

use serde_json::{Value, json};

use super::values::{Place, check};
use super::{cel_declarations, custom_resource, formats, structural};
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};
use structural::{flag, properties};

/// The types that there are.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Everything that is wrong with the schema of a version.
pub(crate) fn validate(schema: &Value, place: &str) -> Vec<FieldError> {
    // A schema that says what none may say is not looked at any further.
    let is_readable = is_supported(schema);
    let mut errors = if is_readable { structural::validate(schema, place) } else { Vec::new() };
    if errors.is_empty() && is_readable {
        defaults(schema, place, &mut errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(format!("{place}.nullable"), "nullable cannot be true at the root"));
    }
    // Rules are looked at only where everything else is as it should be.
    let is_structural = errors.is_empty() && is_readable;
    let mut mistakes = Vec::new();
    keywords(schema, place, &mut mistakes);
    if is_structural && mistakes.is_empty() {
        cel_declarations::validate(schema, place, &mut mistakes);
    }
    errors.extend(mistakes);
    errors
}

/// What the author of a definition is warned of.
pub(crate) fn warnings(definition: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for version in list(definition, "/spec/versions") {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            unknown_formats(schema, &mut unknown);
        }
    }
    unknown.sort_unstable();
    unknown.dedup();
    unknown.into_iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unknown_formats(schema: &Value, unknown: &mut Vec<String>) {
    let format = text(schema, "/format");
    if !format.is_empty() && !formats::is_known(format) {
        unknown.push(format.to_owned());
    }
    for (_, below, _) in below(schema, "") {
        unknown_formats(below, unknown);
    }
}

/// Every schema directly within a schema, with what it is within and its place.
fn below<'a>(schema: &'a Value, place: &str) -> Vec<(&'static str, &'a Value, String)> {
    let mut found: Vec<(&'static str, &'a Value, String)> =
        properties(schema, place).into_iter().map(|(_, below, place)| ("properties", below, place)).collect();
    for name in ["items", "additionalProperties", "not"] {
        if let Some(below) = schema.get(name).filter(|below| below.is_object()) {
            found.push((name, below, format!("{place}.{name}")));
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in schema.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            found.push((name, below, format!("{place}.{name}[{index}]")));
        }
    }
    found
}

/// A default must fit, and must not say more than the schema knows.
fn defaults(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default") {
        let at = format!("{place}.default");
        let mut pruned = default.clone();
        let holder = json!({"properties": {"value": schema}});
        let mut held = json!({ "value": pruned });
        if !custom_resource::prune(&holder, &mut held).is_empty() {
            pruned = held["value"].take();
        }
        if pruned != *default {
            errors.push(FieldError::invalid(at, default, "must not have unknown fields"));
        } else {
            let mut found = Vec::new();
            check(schema, Place { value: default, before: None, path: DEFAULT }, &mut found);
            errors.extend(found.into_iter().map(|error| renamed(error, &at)));
        }
    }
    for (_, below, place) in below(schema, place) {
        defaults(below, &place, errors);
    }
}

/// A place that no schema has, for what has none.
const DEFAULT: &str = "\u{0}";

/// An error about a default has the place of the default, and none in its words.
fn renamed(error: FieldError, at: &str) -> FieldError {
    let below = error.field.trim_start_matches(DEFAULT).to_owned();
    let message = error.message.replace(&format!("{DEFAULT}."), "").replace(DEFAULT, "");
    FieldError { field: format!("{at}{below}"), message, ..error }
}

fn keywords(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    kinds(schema, place, errors);
    unsupported(schema, place, errors);
    maps(schema, place, errors);
    lists(schema, place, errors);
    for (_, below, place) in below(schema, place) {
        keywords(below, &place, errors);
    }
}

fn kinds(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let (kind, at) = (text(schema, "/type"), format!("{place}.type"));
    if !kind.is_empty() && !TYPES.contains(&kind) {
        let supported = TYPES.map(|known| format!("{known:?}"));
        errors.push(FieldError::unsupported(at.clone(), &Value::from(kind), &supported));
    }
    if kind == "null" {
        errors.push(FieldError::forbidden(at, "type cannot be set to null, use nullable as an alternative"));
    }
}

/// Words of JSON schemas that definitions do not have.
const UNSUPPORTED: [&str; 6] = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

fn says(schema: &Value, name: &str) -> bool {
    schema.get(name).is_some_and(|value| !value.is_null())
}

fn is_supported(schema: &Value) -> bool {
    !UNSUPPORTED.iter().any(|name| says(schema, name))
        && below(schema, "").into_iter().all(|(_, below, _)| is_supported(below))
}

fn unsupported(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    for name in UNSUPPORTED {
        if says(schema, name) {
            errors.push(FieldError::forbidden(format!("{place}.{name}"), &format!("{name} is not supported")));
        }
    }
    if flag(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{place}.uniqueItems"), why));
    }
    let kept = "x-kubernetes-preserve-unknown-fields";
    if schema.get(kept) == Some(&json!(false)) {
        errors.push(FieldError::invalid(format!("{place}.{kept}"), &json!(false), "must be true or undefined"));
    }
}

/// What is wrong about the type that something else asks for.
fn must_be(wanted: &str, name: &str, schema: &Value, place: &str) -> Option<FieldError> {
    let (kind, at) = (text(schema, "/type"), format!("{place}.type"));
    let why = format!("must be {wanted} if {name} is specified");
    match kind {
        _ if schema.get(name).is_none() || kind == wanted => None,
        "" => Some(FieldError::required(at, &why)),
        _ => Some(FieldError::invalid(at, &Value::from(kind), &why)),
    }
}

fn among(choices: &[&str], name: &str, schema: &Value, place: &str) -> Option<FieldError> {
    let value = schema.get(name)?;
    let supported: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    let is_known = choices.iter().any(|choice| value == choice);
    (!is_known).then(|| FieldError::unsupported(format!("{place}.{name}"), value, &supported))
}

fn maps(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let values = schema.get("additionalProperties");
    if values.is_some_and(|values| *values != json!(true)) && !properties(schema, place).is_empty() {
        let why = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(format!("{place}.additionalProperties"), why));
    }
    errors.extend(must_be("object", "x-kubernetes-map-type", schema, place));
    errors.extend(among(&["atomic", "granular"], "x-kubernetes-map-type", schema, place));
}

fn lists(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    errors.extend(must_be("array", "x-kubernetes-list-type", schema, place));
    errors.extend(among(&["atomic", "set", "map"], "x-kubernetes-list-type", schema, place));
    let (kind, at) = (text(schema, "/x-kubernetes-list-type"), format!("{place}.x-kubernetes-list-type"));
    let keys = list(schema, "/x-kubernetes-list-map-keys");
    if !keys.is_empty() && kind != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if kind.is_empty() {
            FieldError::required(at, why)
        } else {
            FieldError::invalid(at, &Value::from(kind), why)
        });
    }
    let items = schema.get("items").filter(|items| items.is_object());
    if matches!(kind, "set" | "map") && items.is_some_and(|items| flag(items, "nullable")) {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(format!("{place}.items.nullable"), &why));
    }
    match (kind, items) {
        ("set", Some(items)) => set_items(items, place, errors),
        ("map", items) => map_items(items, keys, place, errors),
        _ => {}
    }
}

fn set_items(items: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let name = match text(items, "/type") {
        "object" => "x-kubernetes-map-type",
        "array" => "x-kubernetes-list-type",
        _ => return,
    };
    let said = text(items, &format!("/{name}"));
    let is_atomic = said == "atomic" || name == "x-kubernetes-list-type" && said.is_empty();
    if !is_atomic {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(format!("{place}.items.{name}"), shown, why));
    }
}

fn map_items(items: Option<&Value>, keys: &[Value], place: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{place}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(at.clone(), "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = items else {
        let why = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{place}.items"), why));
        return;
    };
    let kind = text(items, "/type");
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{place}.items.type"), &Value::from(kind), why));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items.get("properties").and_then(|properties| properties.get(name)) {
            Some(property) => key_property(items, name, property, &format!("{place}.items.properties[{name}]"), errors),
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(at.clone(), &json!(keys), why));
            }
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(at.clone(), &json!(keys), "must not contain duplicate entries"));
        }
    }
}

/// What tells elements apart is always there, and no structure.
fn key_property(items: &Value, name: &str, property: &Value, place: &str, errors: &mut Vec<FieldError>) {
    if matches!(text(property, "/type"), "array" | "object") {
        let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{place}.type"), &json!("object"), why));
    }
    if !list(items, "/required").iter().any(|required| required == name) && property.get("default").is_none() {
        let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(FieldError::required(format!("{place}.default"), why));
    }
    if flag(property, "nullable") {
        let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(FieldError::forbidden(format!("{place}.nullable"), why));
    }
}
