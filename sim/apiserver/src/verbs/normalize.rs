//! Normalization, defaulting and validation of every written object.

use serde_json::{Value, json};

use super::object_parts;
use super::resource_request::ResourceRequest;
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::{metadata, name, value_at};
use crate::registry::conversion;
use crate::registry::types::encode;
use crate::schema::custom_resource;
use crate::strategy::checks::metadata::validate_update;
use crate::strategy::{EmptyValue, defaults, validation};

/// JSON pointers of empty values that normalization omits, with the fields whose errors in the real server still show them.
const SHOWN_EMPTY: [(&str, &str); 6] = [
    ("/data", "data"),
    ("/binaryData", "binaryData"),
    ("/spec/podSelector/matchLabels", "spec.podSelector.matchLabels"),
    ("/spec/template/metadata/labels", "spec.template.metadata.labels"),
    ("/spec/rules", "spec"),
    ("/spec/resources/requests", "spec"),
];

fn empty_values(object: &Value) -> Vec<EmptyValue> {
    let read = |(pointer, field): (&'static str, &'static str)| match value_at(object, pointer)? {
        Value::Object(map) if map.is_empty() => Some(EmptyValue { pointer, field, json: "{}" }),
        Value::Array(list) if list.is_empty() => Some(EmptyValue { pointer, field, json: "[]" }),
        _ => None,
    };
    SHOWN_EMPTY.into_iter().filter_map(read).collect()
}

/// Normalizes and defaults an object before its fields are tracked; returns the empty values that it loses.
pub(super) fn normalize(request: &ResourceRequest<'_>, object: &mut Value) -> Vec<EmptyValue> {
    let empty_values = empty_values(object);
    let target = &request.target;
    if let Some(typed) = target.version.typed {
        encode::encode(typed, object);
        defaults::set_defaults(request.strategy(), typed, object);
    }
    object["apiVersion"] = json!(target.api_version());
    object["kind"] = json!(target.resource.kind);
    conversion::normalize(target, object);
    if let Some(rules) = &target.version.schema {
        // The result of an apply is not decoded again, so that validation rejects its nulls.
        if !request.is_apply() {
            custom_resource::drop_nulls(rules, object);
        }
        custom_resource::fill_defaults(rules, object);
        custom_resource::normalize_numbers(object);
    }
    metadata(object).retain(|_, value| !value.is_null() && !value.as_object().is_some_and(serde_json::Map::is_empty));
    empty_values
}

/// Returns the errors of a change by the rules of the kind, or of the part of it that a subresource changes.
fn change_errors(
    request: &ResourceRequest<'_>,
    live: &Value,
    object: &Value,
    empty_values: &[EmptyValue],
) -> Vec<FieldError> {
    if object_parts::is_part(request.subresource) {
        let mut errors = object_parts::part_errors(request.subresource, live, object);
        if request.subresource == "approval" {
            errors.extend(request.strategy().validate_approval(live, object));
        }
        errors
    } else {
        request.strategy().validate_update(live, object, empty_values)
    }
}

/// Validates an object; `errors` are those found before.
pub(super) fn validate_object(
    request: &ResourceRequest<'_>,
    live: Option<&Value>,
    object: &Value,
    mut errors: Vec<FieldError>,
    empty_values: &[EmptyValue],
) -> Result<(), ApiError> {
    let strategy = request.strategy();
    errors.extend(live.map(|live| validate_update(live, object)).unwrap_or_default());
    errors.extend(validation::validate(&request.target, live, object));
    errors.extend(live.map(|live| change_errors(request, live, object, empty_values)).unwrap_or_default());
    if request.is_status() {
        errors.extend(strategy.validate_status(object));
    }
    for EmptyValue { field, json, .. } in empty_values {
        for error in errors.iter_mut().filter(|error| error.field == *field) {
            error.message = error.message.replacen("Invalid value: null:", &format!("Invalid value: {json}:"), 1);
            error.message = error.message.replacen("\"Requests\": null", &format!("\"Requests\": {json}"), 1);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&request.target.resource, name(object), &errors)) }
}
