//! Conditions in the status of an object.

use serde_json::{Value, json};

use super::fields::array_at;

/// Sets a condition. Its `lastTransitionTime` changes only with its status.
pub(crate) fn set_condition(
    object: &mut Value,
    timestamp: &str,
    condition_type: &str,
    holds: bool,
    reason: &str,
    message: &str,
) {
    let status = if holds { "True" } else { "False" };
    let old = array_at(object, "/status/conditions").iter().find(|condition| condition["type"] == condition_type);
    let since = old
        .filter(|old| old["status"] == status)
        .map_or_else(|| json!(timestamp), |old| old["lastTransitionTime"].clone());
    let condition = json!({
        "type": condition_type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    let mut conditions = array_at(object, "/status/conditions").to_vec();
    match conditions.iter_mut().find(|condition| condition["type"] == condition_type) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
    if !object.get("status").is_some_and(Value::is_object) {
        object["status"] = json!({});
    }
    object["status"]["conditions"] = json!(conditions);
}
