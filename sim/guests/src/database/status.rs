//! The status of a database: the observed state, and the generation that it belongs to.

use serde_json::{Value, json};

use super::children::Child;
use super::plan::ObservedChildren;
use crate::object::text;

/// Type of the condition that every child has its desired state.
pub const APPLIED: &str = "Applied";
/// Type of the condition that the database runs.
pub const READY: &str = "Ready";

/// Returns the status of a condition: `True`, `False`, or an empty text.
pub fn condition_status<'a>(object: &'a Value, kind: &str) -> &'a str {
    find_condition(object, kind).map(|condition| text(condition, "/status")).unwrap_or_default()
}

fn find_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// Builds the status of a database from its children and the reason for which it could not be applied.
pub(super) fn build_status(parent: &Value, observed: &ObservedChildren, rejection: Option<&str>, now: &str) -> Value {
    let applied = match rejection {
        None => (APPLIED, true, "AsDeclared", String::new()),
        Some(reason) => (APPLIED, false, "Refused", reason.to_owned()),
    };
    let replicas = parent.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or_default();
    let stateful_set = observed.get(&Child::StatefulSet);
    let running = stateful_set.and_then(|live| live.pointer("/status/readyReplicas")).and_then(Value::as_u64);
    let is_ready = rejection.is_none() && stateful_set.is_some() && running.unwrap_or_default() >= replicas;
    let reason = if is_ready { "Running" } else { "Waiting" };
    let ready = (READY, is_ready, reason, format!("{} of {replicas} run", running.unwrap_or_default()));
    let conditions = [applied, ready].map(|condition| build_condition(parent, condition, now));
    json!({
        "observedGeneration": parent["metadata"]["generation"],
        "ready": is_ready,
        "conditions": conditions,
    })
}

/// Builds a condition. Its transition time changes only with its status.
fn build_condition(parent: &Value, (kind, is_true, reason, message): (&str, bool, &str, String), now: &str) -> Value {
    let status = if is_true { "True" } else { "False" };
    let same = find_condition(parent, kind).filter(|previous| previous["status"] == status);
    let since = same.map_or_else(|| json!(now), |same| same["lastTransitionTime"].clone());
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}
