//! Validation of objects: names, metadata, rules of built-in kinds, and the schemas of custom resources.
//!
//! Left out on purpose: most of the real server's hand-written validation of built-in kinds. Included are the rules that
//! are broken in practice.

mod builtin;
mod crd;
mod metadata;
pub(crate) mod names;
mod network;
mod other_kinds;
mod persistent_volume_claim;
mod pods;
mod ports;
pub(crate) mod service;
mod struct_diff;
mod workloads;

use serde_json::Value;

use crate::object::field_error::FieldError;
use crate::object::fields::{finalizers, is_deleting};
use crate::registry::resource::Target;
use crate::schema::{crd_schema, custom_resource};

/// Returns all errors of an object.
pub(crate) fn validate(target: &Target, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = names::validate(&target.resource, object);
    errors.extend(metadata::validate(&target.resource, object));
    if target.resource.custom {
        if let Some(rules) = &target.version.schema {
            errors.extend(custom_resource::validate(rules, live, object));
            match &target.version.rules {
                // CEL rules cannot be evaluated for an object that does not match its schema.
                _ if errors.iter().any(FieldError::is_blocking) => {
                    errors.extend(custom_resource::has_rules(rules).then(unchecked_rules_error));
                }
                Some(rules) => errors.extend(rules.check(live, object).errors),
                None => {}
            }
        }
    } else if target.resource.is_crd() {
        errors.extend(crd::validate(object));
    } else {
        errors.extend(builtin::validate(&target.resource.kind, object));
    }
    errors
}

fn unchecked_rules_error() -> FieldError {
    let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    FieldError::invalid("<nil>", &Value::Null, detail)
}

/// Returns all errors of a status write.
pub(crate) fn validate_status(target: &Target, object: &Value) -> Vec<FieldError> {
    match target.resource.kind.as_str() {
        _ if target.resource.custom => Vec::new(),
        "Service" => service::validate_status(object),
        "Namespace" => other_kinds::validate_namespace_status(object),
        _ => Vec::new(),
    }
}

/// Returns the warnings for a write of an object.
pub(crate) fn warnings(target: &Target, object: &Value) -> Vec<String> {
    match &target.resource {
        resource if resource.custom => Vec::new(),
        resource if resource.is_crd() => crd_schema::warnings(object),
        resource => workloads::warnings(&resource.kind, object),
    }
}

/// Returns warnings for CEL rules that unchanged values violate.
pub(crate) fn unchanged_violation_warnings(target: &Target, live: &Value, object: &Value) -> Vec<String> {
    target.version.rules.as_ref().map(|rules| rules.check(Some(live), object).warnings).unwrap_or_default()
}

/// Returns the warnings for a service, sent at every write.
pub(crate) fn service_warnings(target: &Target, object: &Value) -> Vec<String> {
    if target.resource.is("", "services") { service::warnings(object) } else { Vec::new() }
}

/// Returns all errors of a change of metadata.
pub(crate) fn validate_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_deleting(live) {
        let existing = finalizers(live);
        let added: Vec<&str> =
            finalizers(object).into_iter().filter(|finalizer| !existing.contains(finalizer)).collect();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            // The real server checks twice.
            let error = FieldError::forbidden("metadata.finalizers", &detail);
            errors.extend([error.clone(), error]);
        }
    }
    errors
}

/// Returns an error for each changed field that is immutable in this kind.
pub(crate) fn validate_immutable_fields(target: &Target, live: &Value, object: &Value) -> Vec<FieldError> {
    if target.resource.custom { Vec::new() } else { builtin::validate_change(&target.resource.kind, live, object) }
}
