//! What a controller has: the objects that name it as their controller, those that it may adopt, and how its pods are.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::writes::{condition, controlled_by, controller_reference, holds, number};
use crate::object::fields::{is_deleting, later, list, metadata, name, text, uid};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::storage::journal::Verb;

/// An object of a controller, with its place.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) key: Arc<StoredKey>,
    pub(super) object: Arc<Value>,
}

/// Whether labels fit a selector. One that says nothing fits nothing, as controllers want it.
pub(super) fn fits(selector: Option<&Value>, object: &Value) -> bool {
    let labels = crate::object::fields::at(object, "/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let Some(selector) = selector else { return false };
    let exact = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = list(selector, "/matchExpressions");
    if exact.is_none_or(serde_json::Map::is_empty) && expressions.is_empty() {
        return false;
    }
    exact.into_iter().flatten().all(|(key, value)| label(key) == value.as_str())
        && expressions.iter().all(|expression| {
            let found = label(text(expression, "/key"));
            let among = found
                .is_some_and(|found| list(expression, "/values").iter().any(|value| value.as_str() == Some(found)));
            match text(expression, "/operator") {
                "In" => among,
                "NotIn" => !among,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

/// Whether a pod has ended.
pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// Whether a pod counts: neither ended nor about to.
pub(super) fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && !is_deleting(pod)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    holds(pod, "Ready")
}

/// When a pod that is ready became so.
fn ready_since(pod: &Value) -> Option<Timestamp> {
    condition(pod, "Ready").and_then(|ready| text(ready, "/lastTransitionTime").parse().ok())
}

/// Whether a pod has been ready for so many seconds.
pub(super) fn is_available(pod: &Value, seconds: i64, now: Timestamp) -> bool {
    let since = ready_since(pod).unwrap_or(now);
    is_ready(pod) && (seconds == 0 || later(since, SignedDuration::from_secs(seconds)) <= now)
}

/// Which pods go first when there are too many: those that do least.
pub(super) fn by_worth(one: &Value, other: &Value) -> Ordering {
    let phase = |pod: &Value| match text(pod, "/status/phase") {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let cost = |pod: &Value| {
        let said = pod.pointer("/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost");
        said.and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default()
    };
    let restarts =
        |pod: &Value| list(pod, "/status/containerStatuses").iter().map(|status| number(status, "/restartCount")).max();
    let scheduled = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
    let created = |pod: &Value| text(pod, "/metadata/creationTimestamp").to_owned();
    (scheduled(one), phase(one), is_ready(one), cost(one))
        .cmp(&(scheduled(other), phase(other), is_ready(other), cost(other)))
        .then(ready_since(other).cmp(&ready_since(one)))
        .then(restarts(other).cmp(&restarts(one)))
        .then(created(other).cmp(&created(one)))
        .then(name(one).cmp(name(other)))
}

impl ApiServer {
    /// The objects of a resource that an owner controls. Those that fit and belong to nobody are adopted; those that no
    /// longer fit are let go.
    pub(super) fn claim(
        &mut self,
        now: Timestamp,
        controller: &'static str,
        owner: &Value,
        (group, plural): (&str, &str),
    ) -> Vec<Owned> {
        let selector = owner.pointer("/spec/selector").cloned();
        let namespace = text(owner, "/metadata/namespace");
        let mut claimed = Vec::new();
        let here: Vec<Owned> = self
            .store
            .in_namespace(group, plural, namespace)
            .map(|entry| Owned { key: entry.key.clone(), object: entry.object.object() })
            .collect();
        for found in here {
            let fits = fits(selector.as_ref(), &found.object);
            match controlled_by(&found.object) {
                Some(reference) if text(reference, "/uid") != uid(owner) => {}
                Some(_) if fits || is_deleting(owner) => claimed.push(found),
                Some(_) => self.disown(now, controller, owner, &found),
                None if fits && !is_deleting(owner) && !is_deleting(&found.object) => {
                    claimed.extend(self.adopt(now, controller, owner, &found));
                }
                None => {}
            }
        }
        claimed
    }

    fn adopt(&mut self, now: Timestamp, controller: &'static str, owner: &Value, found: &Owned) -> Option<Owned> {
        let mut adopted = Value::clone(&found.object);
        let references = metadata(&mut adopted).entry("ownerReferences").or_insert_with(|| json!([]));
        references.as_array_mut()?.push(controller_reference(owner));
        let who = Authorship::controller(controller, Verb::Patch);
        self.write_as(now, &who, super::writes::MANAGER, &found.key, &adopted);
        Some(Owned { key: found.key.clone(), object: self.stored(&found.key)?.clone() })
    }

    fn disown(&mut self, now: Timestamp, controller: &'static str, owner: &Value, found: &Owned) {
        let mut freed = Value::clone(&found.object);
        let left: Vec<Value> = list(&found.object, "/metadata/ownerReferences")
            .iter()
            .filter(|reference| text(reference, "/uid") != uid(owner))
            .cloned()
            .collect();
        metadata(&mut freed).insert("ownerReferences".to_owned(), json!(left));
        if left.is_empty() {
            metadata(&mut freed).remove("ownerReferences");
        }
        let who = Authorship::controller(controller, Verb::Patch);
        self.write_as(now, &who, super::writes::MANAGER, &found.key, &freed);
    }

    /// The pod that a template describes, for an owner.
    pub(super) fn pod_from(template: &Value, owner: &Value) -> Value {
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
}
