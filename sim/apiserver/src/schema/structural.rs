//! Whether a schema is structural: it says what everything is, and its alternatives only say what values may be.

use serde_json::Value;
use sindri_cel::Pattern;

use crate::object::field_error::FieldError;
use crate::object::fields::text;

/// Where a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that is not structural about a schema.
pub(super) fn validate(schema: &Value, place: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, place, &mut errors);
    errors.sort_by_key(FieldError::full);
    errors
}

pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// The properties of a schema, with their places.
pub(super) fn properties<'a>(schema: &'a Value, place: &str) -> Vec<(&'a String, &'a Value, String)> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, below)| (name, below, format!("{place}.properties[{name}]"))).collect()
}

fn invariants(schema: &Value, level: Level, place: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "/type");
    if let Some(items) = schema.get("items") {
        invariants(items, Level::Item, &format!("{place}.items"), errors);
    } else if kind == "array" {
        errors.push(FieldError::required(format!("{place}.items"), "must be specified"));
    }
    for (_, below, place) in properties(schema, place) {
        invariants(below, Level::Field, &place, errors);
    }
    let additional = format!("{place}.additionalProperties");
    if let Some(values) = schema.get("additionalProperties") {
        if level == Level::Root {
            errors.push(FieldError::forbidden(additional.clone(), "must not be used at the root"));
        }
        if values.is_object() {
            invariants(values, Level::Field, &additional, errors);
        }
        if flag(schema, "x-kubernetes-embedded-resource") {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(additional, why));
        }
    }
    extensions(schema, place, errors);
    value_rules(schema, has_usual_alternatives(schema), place, errors);
    type_rules(schema, level, place, errors);
    identity(schema, level, place, errors);
}

fn extensions(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, name) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{place}.{name}"), &Value::Bool(true), why));
        }
    }
}

fn type_rules(schema: &Value, level: Level, place: &str, errors: &mut Vec<FieldError>) {
    let (kind, at) = (text(schema, "/type"), format!("{place}.type"));
    let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
    let is_open = flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if is_embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at, why)
        } else {
            FieldError::invalid(at, &Value::from(kind), why)
        });
    } else if kind.is_empty() && !is_open {
        let what = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(at, &format!("must not be empty {what}")));
    } else if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, &Value::from(kind), "must be object at the root"));
    }
    let is_empty = properties(schema, place).is_empty();
    if is_embedded && !flag(schema, "x-kubernetes-preserve-unknown-fields") && is_empty {
        let why =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{place}.properties"), why));
    }
}

/// The kind, the version and the metadata of an object are what they always are.
fn identity(schema: &Value, level: Level, place: &str, errors: &mut Vec<FieldError>) {
    let is_object = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, below, place) in properties(schema, place).into_iter().filter(|_| is_object) {
        let (kind, at) = (text(below, "/type"), format!("{place}.type"));
        match name.as_str() {
            "kind" | "apiVersion" if kind != "string" => {
                errors.push(FieldError::invalid(at, &Value::from(kind), "must be string"));
            }
            "metadata" if kind != "object" => {
                errors.push(FieldError::invalid(at, &Value::from(kind), "must be object"));
            }
            "metadata" if level == Level::Root && !says_names_only(below) => {
                let why =
                    "must not specify anything other than name and generateName, but metadata is implicitly specified";
                errors.push(FieldError::forbidden(place, why));
            }
            _ => {}
        }
    }
}

fn says_names_only(metadata: &Value) -> bool {
    let fields = metadata.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let names = metadata.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields.into_iter().all(|field| matches!(field, "type" | "properties" | "default"))
        && names.into_iter().all(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
}

/// A number or a text may say so as an alternative, though types have no place there otherwise.
fn has_usual_alternatives(schema: &Value) -> bool {
    let usual = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    schema.get("anyOf") == Some(&usual)
}

/// The alternatives of a schema, with their places; those that are usual are left out.
fn value_rules(schema: &Value, is_usual: bool, place: &str, errors: &mut Vec<FieldError>) {
    for name in ["anyOf", "allOf", "oneOf"] {
        let below = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, below) in below.enumerate().filter(|_| !(is_usual && name == "anyOf")) {
            let is_usual = name == "allOf" && index == 0 && has_usual_alternatives(below);
            nested(below, is_usual, &format!("{place}.{name}[{index}]"), errors);
        }
    }
    if let Some(not) = schema.get("not") {
        nested(not, false, &format!("{place}.not"), errors);
    }
    let pattern = text(schema, "/pattern");
    if let Err(error) = Pattern::new(pattern) {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(format!("{place}.pattern"), &Value::from(pattern), &why));
    }
}

/// What an alternative must not say.
const FORBIDDEN: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

fn nested(schema: &Value, is_usual: bool, place: &str, errors: &mut Vec<FieldError>) {
    value_rules(schema, is_usual, place, errors);
    if let Some(items) = schema.get("items") {
        nested(items, false, &format!("{place}.items"), errors);
    }
    for (name, below, place) in properties(schema, place) {
        nested(below, false, &place, errors);
        if name == "metadata" {
            errors.push(FieldError::forbidden(place, "must not be specified in a nested context"));
        }
    }
    let is_said = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != "";
    for (name, why) in FORBIDDEN.iter().filter(|(name, _)| schema.get(*name).is_some_and(is_said)) {
        errors.push(FieldError::forbidden(format!("{place}.{name}"), why));
    }
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    if rules.is_some_and(|rules| !rules.is_empty()) {
        let at = format!("{place}.x-kubernetes-validations");
        errors.push(FieldError::forbidden(at, "must be empty to be structural"));
    }
}
