//! Conversion of objects of built-in kinds between API versions and groups: one file per kind that has several.
//!
//! Fields that a version lacks are kept in annotations, as in the real server.

mod autoscaler;
mod event;

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{api_version, string_at};
use crate::registry::resource::{Resource, Target};
use crate::registry::types::{SchemaType, encode};

/// Resources that are served in several groups: group, plural, and the group in which they are stored.
const STORAGE_GROUPS: [(&str, &str, &str); 1] = [("events.k8s.io", "events", "")];

/// Returns the group in which the objects of a resource are stored.
pub(crate) fn storage_group(resource: &Resource) -> &str {
    let entry = STORAGE_GROUPS.iter().find(|(group, plural, _)| resource.is(group, plural));
    entry.map_or(resource.group.as_str(), |(_, _, group)| group)
}

/// Returns the API version in which the objects of a resource are stored.
pub(crate) fn storage_api_version(resource: &Resource) -> String {
    api_version(storage_group(resource), &resource.storage)
}

/// True if objects of a built-in kind can be written in several API versions.
pub(crate) fn has_several_versions(resource: &Resource) -> bool {
    let has_several_groups = STORAGE_GROUPS.iter().any(|(_, plural, group)| resource.is(group, plural))
        || storage_group(resource) != resource.group;
    !resource.custom && (has_several_groups || resource.versions.len() > 1)
}

/// Converts a stored object of a built-in kind to the API version of a request.
pub(crate) fn to_request_version(target: &Target, stored: &Value) -> Value {
    match target.version.typed {
        Some(typed) => to_api_version(stored, &target.api_version(), typed),
        None => stored.clone(),
    }
}

/// Converts an object of a built-in kind to an API version with this type.
pub(crate) fn to_api_version(object: &Value, to: &str, typed: &SchemaType) -> Value {
    let mut object = convert(string_at(object, "/apiVersion"), to, object);
    object["apiVersion"] = json!(to);
    encode::encode(typed, &mut object);
    object
}

/// Converts an object of another API version to the storage version and back, so that it has the form in which it will be
/// returned.
pub(crate) fn normalize(target: &Target, object: &mut Value) {
    if has_several_versions(&target.resource) && target.api_version() != storage_api_version(&target.resource) {
        *object = to_request_version(target, &to_storage_version(target, object.take()));
    }
}

/// Returns an error for each changed field that is immutable in an API version other than the storage version. Fields have
/// the names of the storage version.
pub(crate) fn immutable_field_errors(target: &Target, before: &Value, after: &Value) -> Vec<FieldError> {
    if target.resource.is("events.k8s.io", "events") {
        event::immutable_field_errors(before, after)
    } else {
        Vec::new()
    }
}

/// Converts an object to its storage version.
pub(crate) fn to_storage_version(target: &Target, object: Value) -> Value {
    let (from, to) = (target.api_version(), storage_api_version(&target.resource));
    let mut stored = if from == to { object } else { convert(&from, &to, &object) };
    stored["apiVersion"] = json!(to);
    stored
}

fn convert(from: &str, to: &str, object: &Value) -> Value {
    match (from, to, string_at(object, "/kind")) {
        ("autoscaling/v1", "autoscaling/v2", "HorizontalPodAutoscaler") => autoscaler::to_v2(object),
        ("autoscaling/v2", "autoscaling/v1", "HorizontalPodAutoscaler") => autoscaler::to_v1(object),
        ("events.k8s.io/v1", "v1", "Event") => event::to_core(object),
        ("v1", "events.k8s.io/v1", "Event") => event::to_events_group(object),
        _ => object.clone(),
    }
}
