//! Label selectors inside objects, as controllers and services use them.

use serde_json::Value;

use super::fields::{array_at, string_at, value_at};

/// True if an object's labels match a selector. As for all controllers, an empty selector matches nothing.
pub(crate) fn matches_selector(selector: Option<&Value>, object: &Value) -> bool {
    let labels = value_at(object, "/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let Some(selector) = selector else { return false };
    let exact = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = array_at(selector, "/matchExpressions");
    if exact.is_none_or(serde_json::Map::is_empty) && expressions.is_empty() {
        return false;
    }
    exact.into_iter().flatten().all(|(key, value)| label(key) == value.as_str())
        && expressions.iter().all(|expression| {
            let value = label(string_at(expression, "/key"));
            let is_listed = value.is_some_and(|value| {
                array_at(expression, "/values").iter().any(|listed| listed.as_str() == Some(value))
            });
            match string_at(expression, "/operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// True if the selector of a workload matches an object. That of a ReplicationController is a map of labels.
pub(crate) fn selects_pod(workload: &Value, pod: &Value) -> bool {
    match string_at(workload, "/kind") {
        "ReplicationController" => is_selected_by(workload, pod),
        _ => matches_selector(value_at(workload, "/spec/selector"), pod),
    }
}

/// True if a service or a ReplicationController selects a pod.
pub(crate) fn is_selected_by(owner: &Value, pod: &Value) -> bool {
    let Some(selector) = value_at(owner, "/spec/selector").and_then(Value::as_object) else { return false };
    let labels = value_at(pod, "/metadata/labels");
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}
