//! Objects of a controller: those that it controls, those that it may adopt, and the state of its pods.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::writes::{condition, is_condition_true, number};
use crate::object::fields::{add_duration, array_at, is_deleting, metadata, name, string_at, uid};
use crate::object::key::StoredKey;
use crate::object::label_selectors::selects_pod;
use crate::object::owners::{controller_of, controller_reference};
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::writes::tracked::write_tracked;

/// An object that a controller owns, with its storage key.
#[derive(Clone, Debug)]
pub(super) struct OwnedObject {
    pub(super) key: Arc<StoredKey>,
    pub(super) object: Arc<Value>,
}

/// True if a pod has succeeded or failed.
pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(string_at(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// True if a pod has neither ended nor is being deleted.
pub(super) fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && !is_deleting(pod)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    is_condition_true(pod, "Ready")
}

/// Returns the time of the last change of a pod's `Ready` condition.
fn ready_since(pod: &Value) -> Option<Timestamp> {
    condition(pod, "Ready").and_then(|ready| string_at(ready, "/lastTransitionTime").parse().ok())
}

/// True if a pod has been ready for this number of seconds.
pub(super) fn is_available(pod: &Value, seconds: i64, now: Timestamp) -> bool {
    let since = ready_since(pod).unwrap_or(now);
    is_ready(pod) && (seconds == 0 || add_duration(since, SignedDuration::from_secs(seconds)) <= now)
}

/// Orders pods by the real system's preference for deletion: the least useful pods come first.
pub(super) fn compare_deletion_order(one: &Value, other: &Value) -> Ordering {
    let phase = |pod: &Value| match string_at(pod, "/status/phase") {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let cost = |pod: &Value| {
        let annotation = pod.pointer("/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost");
        annotation.and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default()
    };
    let restarts = |pod: &Value| {
        array_at(pod, "/status/containerStatuses").iter().map(|status| number(status, "/restartCount")).max()
    };
    let scheduled = |pod: &Value| !string_at(pod, "/spec/nodeName").is_empty();
    let created = |pod: &Value| string_at(pod, "/metadata/creationTimestamp").to_owned();
    (scheduled(one), phase(one), is_ready(one), cost(one))
        .cmp(&(scheduled(other), phase(other), is_ready(other), cost(other)))
        .then(ready_since(other).cmp(&ready_since(one)))
        .then(restarts(other).cmp(&restarts(one)))
        .then(created(other).cmp(&created(one)))
        .then(name(one).cmp(name(other)))
}

/// Returns the objects of a resource that an owner controls. Adopts matching objects without a controller, and releases
/// controlled objects that no longer match the owner's selector.
pub(crate) fn claim_objects(
    state: &mut ServerState,
    now: Timestamp,
    controller: &'static str,
    owner: &Value,
    (group, plural): (&str, &str),
) -> Vec<OwnedObject> {
    let namespace = string_at(owner, "/metadata/namespace");
    let mut claimed = Vec::new();
    let candidates: Vec<OwnedObject> = state
        .store
        .in_namespace(group, plural, namespace)
        .map(|entry| OwnedObject { key: entry.key.clone(), object: entry.object.object() })
        .collect();
    for candidate in candidates {
        let matches = selects_pod(owner, &candidate.object);
        match controller_of(&candidate.object) {
            Some(reference) if string_at(reference, "/uid") != uid(owner) => {}
            Some(_) if matches || is_deleting(owner) => claimed.push(candidate),
            Some(_) => release(state, now, controller, owner, &candidate),
            None if matches && !is_deleting(owner) && !is_deleting(&candidate.object) => {
                claimed.extend(adopt(state, now, controller, owner, &candidate));
            }
            None => {}
        }
    }
    claimed
}

fn adopt(
    state: &mut ServerState,
    now: Timestamp,
    controller: &'static str,
    owner: &Value,
    object: &OwnedObject,
) -> Option<OwnedObject> {
    let mut adopted = Value::clone(&object.object);
    let references = metadata(&mut adopted).entry("ownerReferences").or_insert_with(|| json!([]));
    references.as_array_mut()?.push(controller_reference(owner));
    let attribution = Attribution::controller(controller, Verb::Patch);
    write_tracked(state, now, &attribution, super::writes::MANAGER, &object.key, &adopted);
    Some(OwnedObject { key: object.key.clone(), object: state.store.find_key(&object.key)?.clone() })
}

fn release(state: &mut ServerState, now: Timestamp, controller: &'static str, owner: &Value, object: &OwnedObject) {
    let mut released = Value::clone(&object.object);
    let remaining: Vec<Value> = array_at(&object.object, "/metadata/ownerReferences")
        .iter()
        .filter(|reference| string_at(reference, "/uid") != uid(owner))
        .cloned()
        .collect();
    metadata(&mut released).insert("ownerReferences".to_owned(), json!(remaining));
    if remaining.is_empty() {
        metadata(&mut released).remove("ownerReferences");
    }
    let attribution = Attribution::controller(controller, Verb::Patch);
    write_tracked(state, now, &attribution, super::writes::MANAGER, &object.key, &released);
}

/// Returns the pod that a template describes, controlled by an owner.
pub(crate) fn pod_from(template: &Value, owner: &Value) -> Value {
    let part = |pointer: &str| template.pointer(pointer).cloned().filter(|part| !part.is_null());
    let mut pod = json!({
        "metadata": {
            "generateName": format!("{}-", name(owner)), "ownerReferences": [controller_reference(owner)],
        },
        "spec": part("/spec").unwrap_or_else(|| json!({})),
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = part(&format!("/metadata/{field}")) {
            pod["metadata"][field] = value;
        }
    }
    pod
}
