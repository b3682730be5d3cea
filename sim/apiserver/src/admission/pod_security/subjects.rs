//! The pod and its containers as the subjects of a violation.

use serde_json::Value;

use crate::object::fields::{array_at, string_at, value_at};

/// Returns the containers of a pod, those of its initialization first.
pub(super) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
        .into_iter()
        .flat_map(|list| array_at(pod, list))
}

/// Returns the names of the containers that a predicate holds for.
pub(super) fn names_of(pod: &Value, predicate: impl Fn(&Value) -> bool) -> Vec<&str> {
    containers(pod).filter(|container| predicate(container)).map(|container| string_at(container, "/name")).collect()
}

/// Returns a field of the security context of a pod's specification or of a container.
pub(super) fn context<'a>(owner: &'a Value, field: &str) -> Option<&'a Value> {
    value_at(owner, &format!("/securityContext/{field}")).filter(|value| !value.is_null())
}

/// Returns a field of the security context of a pod.
pub(super) fn pod_context<'a>(pod: &'a Value, field: &str) -> Option<&'a Value> {
    pod.get("spec").and_then(|spec| context(spec, field))
}

/// Lists quoted words after their noun: `container "a"`, or `containers "a", "b"`.
pub(super) fn list(noun: &str, words: &[&str]) -> String {
    format!("{noun}{} {}", if words.len() == 1 { "" } else { "s" }, quoted(words))
}

/// Lists quoted words.
pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// Returns the pod, if it is one of the offenders, and the offending containers, as the subject of a sentence.
pub(super) fn offenders(is_pod: bool, containers: &[&str]) -> Option<String> {
    match (is_pod, containers) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(list("container", names)),
        (true, names) => Some(format!("pod and {}", list("container", names))),
    }
}

/// Returns the words without repetition, sorted.
pub(super) fn sorted_set<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    words.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// One violation of a level, such as `host namespaces (hostPID=true)`.
pub(super) fn violation(reason: &str, detail: &str) -> String {
    format!("{reason} ({detail})")
}
