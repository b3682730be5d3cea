//! Normalization, defaulting and validation of every written object.

use serde_json::{Value, json};

use super::call::Call;
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::{at, metadata, name};
use crate::registry::conversion;
use crate::registry::types::encode;
use crate::schema::custom_resource;
use crate::strategy::{defaults, validation};

/// Fields that are empty in the request and omitted by normalization, which errors of the real server still show.
const SHOWN_EMPTY: [(&str, &str); 6] = [
    ("/data", "data"),
    ("/binaryData", "binaryData"),
    ("/spec/podSelector/matchLabels", GENERATION),
    ("/spec/template/metadata/labels", "spec.template.metadata.labels"),
    ("/spec/rules", "spec"),
    ("/spec/resources/requests", "spec"),
];

/// Marker instead of a field: an empty value here counts as a change of the generation.
pub(super) const GENERATION: &str = "generation";

/// Empty values of a request: the field in errors, and its value.
pub(super) type EmptyValues = Vec<(&'static str, &'static str)>;

fn empty_values(object: &Value) -> EmptyValues {
    let empty = |(pointer, field): &(&str, &'static str)| match at(object, pointer)? {
        Value::Object(map) if map.is_empty() => Some((*field, "{}")),
        Value::Array(list) if list.is_empty() => Some((*field, "[]")),
        _ => None,
    };
    SHOWN_EMPTY.iter().filter_map(empty).collect()
}

/// Normalizes and defaults an object before its fields are tracked; returns the empty values that it loses.
pub(super) fn normalize(call: &Call<'_>, object: &mut Value) -> EmptyValues {
    let empty_values = empty_values(object);
    let target = &call.target;
    if let Some(typed) = target.version.typed {
        encode::encode(typed, object);
        defaults::fill(typed, object);
    }
    object["apiVersion"] = json!(target.api_version());
    object["kind"] = json!(target.resource.kind);
    conversion::normalize(target, object);
    if let Some(rules) = &target.version.schema {
        // The result of an apply is not decoded again, so that validation rejects its nulls.
        if !call.is_apply() {
            custom_resource::drop_nulls(rules, object);
        }
        custom_resource::fill_defaults(rules, object);
        custom_resource::normalize_numbers(object);
    }
    metadata(object).retain(|_, value| !value.is_null() && !value.as_object().is_some_and(serde_json::Map::is_empty));
    empty_values
}

/// Validates an object; `errors` are those found before.
pub(super) fn validate_object(
    call: &Call<'_>,
    live: Option<&Value>,
    object: &Value,
    mut errors: Vec<FieldError>,
    empty_values: &EmptyValues,
) -> Result<(), ApiError> {
    errors.extend(live.map(|live| validation::validate_change(live, object)).unwrap_or_default());
    errors.extend(validation::validate(&call.target, live, object));
    errors
        .extend(live.map(|live| validation::validate_immutable_fields(&call.target, live, object)).unwrap_or_default());
    if call.is_status() {
        errors.extend(validation::validate_status(&call.target, object));
    }
    let fixed = live.is_some_and(|live| live.get("immutable") == Some(&json!(true)));
    let of = call.target.resource.kind.as_str();
    let counts = |field: &str| matches!((of, field), ("ConfigMap", "binaryData") | ("Secret", "data"));
    for (field, _) in empty_values.iter().filter(|(field, _)| fixed && counts(field)) {
        // An absent field that becomes empty has changed.
        let told = errors.iter().any(|error| error.field == *field);
        if !told && live.is_some_and(|live| live.get(*field).is_none()) {
            errors.push(FieldError::forbidden(*field, "field is immutable when `immutable` is set"));
        }
    }
    for (field, empty) in empty_values {
        for error in errors.iter_mut().filter(|error| error.field == *field) {
            error.message = error.message.replacen("Invalid value: null:", &format!("Invalid value: {empty}:"), 1);
            error.message = error.message.replacen("\"Requests\": null", &format!("\"Requests\": {empty}"), 1);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(&call.target.resource, name(object), &errors)) }
}
