//! Validation of objects: names, metadata, rules of built-in kinds, and the schemas of custom resources.
//!
//! Left out on purpose: most of the real server's hand-written validation of built-in kinds. Included are the rules that
//! are broken in practice.

use serde_json::Value;

use super::checks::{metadata, names};
use super::kinds::strategy_for;
use crate::object::field_error::FieldError;
use crate::registry::resource::{Target, Version};
use crate::schema::custom_resource;

/// Returns all errors of an object.
pub(crate) fn validate(target: &Target, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let strategy = strategy_for(&target.resource);
    let mut errors = names::validate(object, |name| strategy.name_errors(name));
    errors.extend(metadata::validate(&target.resource, object));
    errors.extend(strategy.validate(object));
    if target.resource.custom {
        let has_blocking_errors = errors.iter().any(FieldError::is_blocking);
        errors.extend(validate_by_schema(&target.version, has_blocking_errors, live, object));
    }
    errors
}

/// Returns the errors of a custom resource against its schema and its CEL rules.
fn validate_by_schema(
    version: &Version,
    has_blocking_errors: bool,
    live: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let Some(schema) = &version.schema else { return Vec::new() };
    let mut errors = custom_resource::validate(schema, live, object);
    match &version.rules {
        // CEL rules cannot be evaluated for an object that does not match its schema.
        _ if has_blocking_errors || errors.iter().any(FieldError::is_blocking) => {
            errors.extend(custom_resource::has_rules(schema).then(unchecked_rules_error));
        }
        Some(rules) => errors.extend(rules.check(live, object).errors),
        None => {}
    }
    errors
}

fn unchecked_rules_error() -> FieldError {
    let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    FieldError::invalid("<nil>", &Value::Null, detail)
}

/// Returns warnings for CEL rules that unchanged values violate.
pub(crate) fn unchanged_violation_warnings(target: &Target, live: &Value, object: &Value) -> Vec<String> {
    target.version.rules.as_ref().map(|rules| rules.check(Some(live), object).warnings).unwrap_or_default()
}
