//! Checks the schema of a CRD version: supported keywords, structure, defaults and rules.

use serde_json::{Value, json};

use super::values::{ValueContext, check};
use super::{cel_declarations, custom_resource, formats, structural};
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use structural::{flag, properties};

/// Supported values of `type`.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Returns all errors of the schema of a version.
pub(crate) fn validate(schema: &Value, path: &str) -> Vec<FieldError> {
    // A schema with unsupported keywords is not checked further.
    let is_checkable = is_supported(schema);
    let mut errors = if is_checkable { structural::validate(schema, path) } else { Vec::new() };
    if errors.is_empty() && is_checkable {
        check_defaults(schema, path, &mut errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    // Rules are checked only if everything else is valid.
    let is_structural = errors.is_empty() && is_checkable;
    let mut keyword_errors = Vec::new();
    check_keywords(schema, path, &mut keyword_errors);
    if is_structural && keyword_errors.is_empty() {
        cel_declarations::validate(schema, path, &mut keyword_errors);
    }
    errors.extend(keyword_errors);
    errors
}

/// Returns the warnings for a CRD: unrecognized formats.
pub(crate) fn warnings(crd: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for version in array_at(crd, "/spec/versions") {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            collect_unknown_formats(schema, &mut unknown);
        }
    }
    unknown.sort_unstable();
    unknown.dedup();
    unknown.into_iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

fn collect_unknown_formats(schema: &Value, unknown: &mut Vec<String>) {
    let format = string_at(schema, "/format");
    if !format.is_empty() && !formats::is_known(format) {
        unknown.push(format.to_owned());
    }
    for (_, below, _) in subschemas(schema, "") {
        collect_unknown_formats(below, unknown);
    }
}

/// Returns the direct subschemas of a schema: keyword, schema and path.
fn subschemas<'a>(schema: &'a Value, path: &str) -> Vec<(&'static str, &'a Value, String)> {
    let mut subschemas: Vec<(&'static str, &'a Value, String)> =
        properties(schema, path).into_iter().map(|(_, below, path)| ("properties", below, path)).collect();
    for name in ["items", "additionalProperties", "not"] {
        if let Some(below) = schema.get(name).filter(|below| below.is_object()) {
            subschemas.push((name, below, format!("{path}.{name}")));
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in schema.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            subschemas.push((name, below, format!("{path}.{name}[{index}]")));
        }
    }
    subschemas
}

/// Checks that defaults are valid and have no unknown fields.
fn check_defaults(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default") {
        let field = format!("{path}.default");
        let mut pruned = default.clone();
        let wrapper_schema = json!({"properties": {"value": schema}});
        let mut wrapper = json!({ "value": pruned });
        if !custom_resource::prune(&wrapper_schema, &mut wrapper).is_empty() {
            pruned = wrapper["value"].take();
        }
        if pruned != *default {
            errors.push(FieldError::invalid(field, default, "must not have unknown fields"));
        } else {
            let mut default_errors = Vec::new();
            check(schema, ValueContext { value: default, before: None, path: DEFAULT }, &mut default_errors);
            errors.extend(default_errors.into_iter().map(|error| relocate(error, &field)));
        }
    }
    for (_, below, path) in subschemas(schema, path) {
        check_defaults(below, &path, errors);
    }
}

/// Placeholder path, replaced by `relocate`.
const DEFAULT: &str = "\u{0}";

/// Gives an error about a default the path of the default, and removes the placeholder from its message.
fn relocate(error: FieldError, field: &str) -> FieldError {
    let below = error.field.trim_start_matches(DEFAULT).to_owned();
    let message = error.message.replace(&format!("{DEFAULT}."), "").replace(DEFAULT, "");
    FieldError { field: format!("{field}{below}"), message, ..error }
}

fn check_keywords(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    check_type(schema, path, errors);
    check_unsupported(schema, path, errors);
    check_map(schema, path, errors);
    check_list(schema, path, errors);
    for (_, below, path) in subschemas(schema, path) {
        check_keywords(below, &path, errors);
    }
}

fn check_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (type_name, field) = (string_at(schema, "/type"), format!("{path}.type"));
    if !type_name.is_empty() && !TYPES.contains(&type_name) {
        let supported = TYPES.map(|known| format!("{known:?}"));
        errors.push(FieldError::unsupported(field.clone(), &Value::from(type_name), &supported));
    }
    if type_name == "null" {
        errors.push(FieldError::forbidden(field, "type cannot be set to null, use nullable as an alternative"));
    }
}

/// Keywords of JSON Schema that CRDs do not support.
const UNSUPPORTED: [&str; 6] = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

fn has_keyword(schema: &Value, name: &str) -> bool {
    schema.get(name).is_some_and(|value| !value.is_null())
}

fn is_supported(schema: &Value) -> bool {
    !UNSUPPORTED.iter().any(|name| has_keyword(schema, name))
        && subschemas(schema, "").into_iter().all(|(_, below, _)| is_supported(below))
}

fn check_unsupported(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in UNSUPPORTED {
        if has_keyword(schema, name) {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), &format!("{name} is not supported")));
        }
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
    }
    let keyword = "x-kubernetes-preserve-unknown-fields";
    if schema.get(keyword) == Some(&json!(false)) {
        errors.push(FieldError::invalid(format!("{path}.{keyword}"), &json!(false), "must be true or undefined"));
    }
}

/// Checks that a schema with the keyword `name` has the type that it requires.
fn check_required_type(expected: &str, name: &str, schema: &Value, path: &str) -> Option<FieldError> {
    let (type_name, field) = (string_at(schema, "/type"), format!("{path}.type"));
    let detail = format!("must be {expected} if {name} is specified");
    match type_name {
        _ if schema.get(name).is_none() || type_name == expected => None,
        "" => Some(FieldError::required(field, &detail)),
        _ => Some(FieldError::invalid(field, &Value::from(type_name), &detail)),
    }
}

fn check_choice(choices: &[&str], name: &str, schema: &Value, path: &str) -> Option<FieldError> {
    let value = schema.get(name)?;
    let supported: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    let is_known = choices.iter().any(|choice| value == choice);
    (!is_known).then(|| FieldError::unsupported(format!("{path}.{name}"), value, &supported))
}

fn check_map(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let values = schema.get("additionalProperties");
    if values.is_some_and(|values| *values != json!(true)) && !properties(schema, path).is_empty() {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
    }
    errors.extend(check_required_type("object", "x-kubernetes-map-type", schema, path));
    errors.extend(check_choice(&["atomic", "granular"], "x-kubernetes-map-type", schema, path));
}

fn check_list(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    errors.extend(check_required_type("array", "x-kubernetes-list-type", schema, path));
    errors.extend(check_choice(&["atomic", "set", "map"], "x-kubernetes-list-type", schema, path));
    let (type_name, field) = (string_at(schema, "/x-kubernetes-list-type"), format!("{path}.x-kubernetes-list-type"));
    let keys = array_at(schema, "/x-kubernetes-list-map-keys");
    if !keys.is_empty() && type_name != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if type_name.is_empty() {
            FieldError::required(field, detail)
        } else {
            FieldError::invalid(field, &Value::from(type_name), detail)
        });
    }
    let items = schema.get("items").filter(|items| items.is_object());
    if matches!(type_name, "set" | "map") && items.is_some_and(|items| flag(items, "nullable")) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {type_name}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), &detail));
    }
    match (type_name, items) {
        ("set", Some(items)) => check_set_items(items, path, errors),
        ("map", items) => check_map_items(items, keys, path, errors),
        _ => {}
    }
}

fn check_set_items(items: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = match string_at(items, "/type") {
        "object" => "x-kubernetes-map-type",
        "array" => "x-kubernetes-list-type",
        _ => return,
    };
    let merge_type = string_at(items, &format!("/{name}"));
    let is_atomic = merge_type == "atomic" || name == "x-kubernetes-list-type" && merge_type.is_empty();
    if !is_atomic {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let list_type = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(format!("{path}.items.{name}"), list_type, detail));
    }
}

fn check_map_items(items: Option<&Value>, keys: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(field.clone(), "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{path}.items"), detail));
        return;
    };
    let type_name = string_at(items, "/type");
    if type_name != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items.type"), &Value::from(type_name), detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items.get("properties").and_then(|properties| properties.get(name)) {
            Some(property) => {
                check_key_property(items, name, property, &format!("{path}.items.properties[{name}]"), errors)
            }
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(field.clone(), &json!(keys), detail));
            }
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(field.clone(), &json!(keys), "must not contain duplicate entries"));
        }
    }
}

/// Checks a property that identifies list elements: it must be a scalar and always present.
fn check_key_property(items: &Value, name: &str, property: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if matches!(string_at(property, "/type"), "array" | "object") {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.type"), &json!("object"), detail));
    }
    if !array_at(items, "/required").iter().any(|required| required == name) && property.get("default").is_none() {
        let detail =
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(FieldError::required(format!("{path}.default"), detail));
    }
    if flag(property, "nullable") {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(FieldError::forbidden(format!("{path}.nullable"), detail));
    }
}
