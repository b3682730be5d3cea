//! What is reported: what was observed, and of which generation of the declaration.

use serde_json::{Value, json};

use super::children::Child;
use super::plan::Observed;
use crate::client::text;

/// The condition that every child is as declared.
pub const APPLIED: &str = "Applied";
/// The condition that the database runs.
pub const READY: &str = "Ready";

/// The status of a condition: `True`, `False`, or nothing.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    find(object, kind).map(|condition| text(condition, "/status")).unwrap_or_default()
}

fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// What to report about a declaration, given its children and what stood in the way.
pub(super) fn report(parent: &Value, observed: &Observed, trouble: Option<&str>, now: &str) -> Value {
    let applied = match trouble {
        None => (APPLIED, true, "AsDeclared", String::new()),
        Some(trouble) => (APPLIED, false, "Refused", trouble.to_owned()),
    };
    let wanted = parent.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or_default();
    let deployment = observed.get(&Child::Deployment);
    let running = deployment.and_then(|live| live.pointer("/status/readyReplicas")).and_then(Value::as_u64);
    let is_ready = trouble.is_none() && deployment.is_some() && running.unwrap_or_default() >= wanted;
    let reason = if is_ready { "Running" } else { "Waiting" };
    let ready = (READY, is_ready, reason, format!("{} of {wanted} run", running.unwrap_or_default()));
    let conditions = [applied, ready].map(|condition| written(parent, condition, now));
    json!({
        "observedGeneration": parent["metadata"]["generation"],
        "ready": is_ready,
        "conditions": conditions,
    })
}

/// A condition; its time moves only when its status does.
fn written(parent: &Value, (kind, holds, reason, message): (&str, bool, &str, String), now: &str) -> Value {
    let status = if holds { "True" } else { "False" };
    let before = find(parent, kind).filter(|before| before["status"] == status);
    let since = before.map_or_else(|| json!(now), |before| before["lastTransitionTime"].clone());
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}
