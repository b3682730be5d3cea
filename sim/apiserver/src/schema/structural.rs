//! Checks that a schema is structural: it declares the type of everything, and `anyOf` and the like only restrict values.

use serde_json::Value;
use sindri_cel::Pattern;

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;

/// Position of a schema in its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// Returns all violations of the structural rules.
pub(super) fn validate(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_structure(schema, SchemaLevel::Root, path, &mut errors);
    errors.sort_by_key(FieldError::full);
    errors
}

pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// Returns the properties of a schema: name, schema and path.
pub(super) fn properties<'a>(schema: &'a Value, path: &str) -> Vec<(&'a String, &'a Value, String)> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, below)| (name, below, format!("{path}.properties[{name}]"))).collect()
}

fn check_structure(schema: &Value, level: SchemaLevel, path: &str, errors: &mut Vec<FieldError>) {
    let type_name = string_at(schema, "/type");
    if let Some(items) = schema.get("items") {
        check_structure(items, SchemaLevel::Item, &format!("{path}.items"), errors);
    } else if type_name == "array" {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    for (_, below, path) in properties(schema, path) {
        check_structure(below, SchemaLevel::Field, &path, errors);
    }
    let additional = format!("{path}.additionalProperties");
    if let Some(values) = schema.get("additionalProperties") {
        if level == SchemaLevel::Root {
            errors.push(FieldError::forbidden(additional.clone(), "must not be used at the root"));
        }
        if values.is_object() {
            check_structure(values, SchemaLevel::Field, &additional, errors);
        }
        if flag(schema, "x-kubernetes-embedded-resource") {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(additional, detail));
        }
    }
    check_extensions(schema, path, errors);
    check_value_keywords(schema, is_int_or_string_any_of(schema), path, errors);
    check_type(schema, level, path, errors);
    check_object_fields(schema, level, path, errors);
}

fn check_extensions(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{name}"), &Value::Bool(true), detail));
        }
    }
}

fn check_type(schema: &Value, level: SchemaLevel, path: &str, errors: &mut Vec<FieldError>) {
    let (type_name, field) = (string_at(schema, "/type"), format!("{path}.type"));
    let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
    let is_open = flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if is_embedded && type_name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if type_name.is_empty() {
            FieldError::required(field, detail)
        } else {
            FieldError::invalid(field, &Value::from(type_name), detail)
        });
    } else if type_name.is_empty() && !is_open {
        let position = match level {
            SchemaLevel::Root => "at the root",
            SchemaLevel::Item => "for specified array items",
            SchemaLevel::Field => "for specified object fields",
        };
        errors.push(FieldError::required(field, &format!("must not be empty {position}")));
    } else if level == SchemaLevel::Root && !type_name.is_empty() && type_name != "object" {
        errors.push(FieldError::invalid(field, &Value::from(type_name), "must be object at the root"));
    }
    let is_empty = properties(schema, path).is_empty();
    if is_embedded && !flag(schema, "x-kubernetes-preserve-unknown-fields") && is_empty {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
}

/// Checks the schemas of `kind`, `apiVersion` and `metadata`.
fn check_object_fields(schema: &Value, level: SchemaLevel, path: &str, errors: &mut Vec<FieldError>) {
    let is_object = level == SchemaLevel::Root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, below, path) in properties(schema, path).into_iter().filter(|_| is_object) {
        let (type_name, field) = (string_at(below, "/type"), format!("{path}.type"));
        match name.as_str() {
            "kind" | "apiVersion" if type_name != "string" => {
                errors.push(FieldError::invalid(field, &Value::from(type_name), "must be string"));
            }
            "metadata" if type_name != "object" => {
                errors.push(FieldError::invalid(field, &Value::from(type_name), "must be object"));
            }
            "metadata" if level == SchemaLevel::Root && !restricts_names_only(below) => {
                let detail =
                    "must not specify anything other than name and generateName, but metadata is implicitly specified";
                errors.push(FieldError::forbidden(path, detail));
            }
            _ => {}
        }
    }
}

fn restricts_names_only(metadata: &Value) -> bool {
    let fields = metadata.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let names = metadata.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields.into_iter().all(|field| matches!(field, "type" | "properties" | "default"))
        && names.into_iter().all(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
}

/// True if `anyOf` is the common form of an int-or-string, which may contain types.
fn is_int_or_string_any_of(schema: &Value) -> bool {
    let usual = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    schema.get("anyOf") == Some(&usual)
}

/// Checks `anyOf`, `allOf`, `oneOf`, `not` and `pattern`. With `allows_types`, `anyOf` is skipped.
fn check_value_keywords(schema: &Value, allows_types: bool, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["anyOf", "allOf", "oneOf"] {
        let below = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, below) in below.enumerate().filter(|_| !(allows_types && name == "anyOf")) {
            let allows_types = name == "allOf" && index == 0 && is_int_or_string_any_of(below);
            check_nested(below, allows_types, &format!("{path}.{name}[{index}]"), errors);
        }
    }
    if let Some(not) = schema.get("not") {
        check_nested(not, false, &format!("{path}.not"), errors);
    }
    let pattern = string_at(schema, "/pattern");
    if let Err(error) = Pattern::new(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), &Value::from(pattern), &detail));
    }
}

/// Keywords that are forbidden in a nested schema.
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

fn check_nested(schema: &Value, allows_types: bool, path: &str, errors: &mut Vec<FieldError>) {
    check_value_keywords(schema, allows_types, path, errors);
    if let Some(items) = schema.get("items") {
        check_nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, below, path) in properties(schema, path) {
        check_nested(below, false, &path, errors);
        if name == "metadata" {
            errors.push(FieldError::forbidden(path, "must not be specified in a nested context"));
        }
    }
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != "";
    for (name, detail) in FORBIDDEN.iter().filter(|(name, _)| schema.get(*name).is_some_and(is_set)) {
        errors.push(FieldError::forbidden(format!("{path}.{name}"), detail));
    }
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    if rules.is_some_and(|rules| !rules.is_empty()) {
        let field = format!("{path}.x-kubernetes-validations");
        errors.push(FieldError::forbidden(field, "must be empty to be structural"));
    }
}
