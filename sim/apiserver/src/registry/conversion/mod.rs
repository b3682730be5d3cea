//! Objects of built-in kinds in another version than the one in which they are kept: one file a kind that has several.
//!
//! Each version says the same in other words; what one cannot say is kept in annotations, as in the real server.

mod autoscaler;
mod event;

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{api_version, text};
use crate::registry::resource::{Resource, Target};
use crate::registry::types::{Type, encode};

/// Where objects are kept that have several groups: group, plural, and the group in which they are kept.
const HOMES: [(&str, &str, &str); 1] = [("events.k8s.io", "events", "")];

/// The group in which the objects of a resource are kept.
pub(crate) fn home(resource: &Resource) -> &str {
    let elsewhere = HOMES.iter().find(|(group, plural, _)| resource.is(group, plural));
    elsewhere.map_or(resource.group.as_str(), |(_, _, home)| home)
}

/// The version in which the objects of a resource are kept.
pub(crate) fn kept_version(resource: &Resource) -> String {
    api_version(home(resource), &resource.storage)
}

/// Whether objects of a built-in kind may be written in several versions.
pub(crate) fn has_versions(resource: &Resource) -> bool {
    let shares = HOMES.iter().any(|(_, plural, home)| resource.is(home, plural)) || home(resource) != resource.group;
    !resource.custom && (shares || resource.versions.len() > 1)
}

/// An object of a built-in kind in the version of a request.
pub(crate) fn shown(target: &Target, kept: &Value) -> Value {
    match target.version.typed {
        Some(typed) => in_version(kept, &target.api_version(), typed),
        None => kept.clone(),
    }
}

/// An object of a built-in kind in a version, which has this type.
pub(crate) fn in_version(object: &Value, wanted: &str, typed: &Type) -> Value {
    let mut object = between(text(object, "/apiVersion"), wanted, object);
    object["apiVersion"] = json!(wanted);
    encode::encode(typed, &mut object);
    object
}

/// Brings an object of a version that is not kept into the form in which it comes back.
pub(crate) fn settle(target: &Target, object: &mut Value) {
    if has_versions(&target.resource) && target.api_version() != kept_version(&target.resource) {
        *object = shown(target, &kept(target, object.take()));
    }
}

/// What a write in a version that is not kept may not change: each field by the name that it has where it is kept.
pub(crate) fn fixed_mistakes(target: &Target, before: &Value, after: &Value) -> Vec<FieldError> {
    if target.resource.is("events.k8s.io", "events") { event::fixed_mistakes(before, after) } else { Vec::new() }
}

/// An object as it is kept.
pub(crate) fn kept(target: &Target, object: Value) -> Value {
    let (from, to) = (target.api_version(), kept_version(&target.resource));
    let mut kept = if from == to { object } else { between(&from, &to, &object) };
    kept["apiVersion"] = json!(to);
    kept
}

fn between(from: &str, to: &str, object: &Value) -> Value {
    match (from, to, text(object, "/kind")) {
        ("autoscaling/v1", "autoscaling/v2", "HorizontalPodAutoscaler") => autoscaler::newer(object),
        ("autoscaling/v2", "autoscaling/v1", "HorizontalPodAutoscaler") => autoscaler::older(object),
        ("events.k8s.io/v1", "v1", "Event") => event::of_core(object),
        ("v1", "events.k8s.io/v1", "Event") => event::of_events(object),
        _ => object.clone(),
    }
}
