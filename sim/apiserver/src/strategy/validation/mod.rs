//! Rules that objects must follow: names, the few rules of built-in kinds, and the schemas of custom resources.
//!
//! Left out on purpose: most of the hand-written validation of built-in kinds. What is here is what makes an object
//! invalid in practice.

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

/// Everything that is wrong with an object.
pub(crate) fn validate(target: &Target, live: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let mut errors = names::validate(&target.resource, object);
    errors.extend(metadata::validate(&target.resource, object));
    if target.resource.custom {
        if let Some(rules) = &target.version.schema {
            errors.extend(custom_resource::validate(rules, live, object));
            match &target.version.rules {
                // Of an object that is wrong in its form nobody knows what rules would say.
                _ if errors.iter().any(FieldError::is_blocking) => {
                    errors.extend(custom_resource::has_rules(rules).then(rules_not_checked));
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

fn rules_not_checked() -> FieldError {
    let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    FieldError::invalid("<nil>", &Value::Null, why)
}

/// What is wrong with a status that somebody writes.
pub(crate) fn validate_status(target: &Target, object: &Value) -> Vec<FieldError> {
    match target.resource.kind.as_str() {
        _ if target.resource.custom => Vec::new(),
        "Service" => service::status(object),
        "Namespace" => other_kinds::namespace_status(object),
        _ => Vec::new(),
    }
}

/// What the author of an object is warned of.
pub(crate) fn warnings(target: &Target, object: &Value) -> Vec<String> {
    match &target.resource {
        resource if resource.custom => Vec::new(),
        resource if resource.is_crd() => crd_schema::warnings(object),
        resource => workloads::warnings(&resource.kind, object),
    }
}

/// What the author of a change is warned of: rules that were broken before, too.
pub(crate) fn kept_mistakes(target: &Target, live: &Value, object: &Value) -> Vec<String> {
    target.version.rules.as_ref().map(|rules| rules.check(Some(live), object).warnings).unwrap_or_default()
}

/// What the author of a service is warned of, at every write.
pub(crate) fn service_warnings(target: &Target, object: &Value) -> Vec<String> {
    if target.resource.is("", "services") { service::warnings(object) } else { Vec::new() }
}

/// Everything that is wrong with a change of metadata.
pub(crate) fn validate_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_deleting(live) {
        let known = finalizers(live);
        let added: Vec<&str> = finalizers(object).into_iter().filter(|finalizer| !known.contains(finalizer)).collect();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            // The real server looks twice.
            let error = FieldError::forbidden("metadata.finalizers", &why);
            errors.extend([error.clone(), error]);
        }
    }
    errors
}

/// What a kind itself does not let anybody change.
pub(crate) fn validate_kept(target: &Target, live: &Value, object: &Value) -> Vec<FieldError> {
    if target.resource.custom { Vec::new() } else { builtin::validate_change(&target.resource.kind, live, object) }
}
