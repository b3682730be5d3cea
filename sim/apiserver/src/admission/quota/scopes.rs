//! Scopes of a quota: the pods that it counts. A quota with scopes counts nothing else.

use serde_json::Value;

use crate::object::fields::{array_at, string_at, value_at};

/// True if a quota counts an object.
pub(super) fn matches_scopes(quota: &Value, group: &str, plural: &str, object: &Value) -> bool {
    let scopes = array_at(quota, "/spec/scopes");
    let expressions = array_at(quota, "/spec/scopeSelector/matchExpressions");
    if scopes.is_empty() && expressions.is_empty() {
        return true;
    }
    group.is_empty()
        && plural == "pods"
        && scopes.iter().filter_map(Value::as_str).all(|scope| is_in_scope(scope, object))
        && expressions.iter().all(|expression| matches_expression(expression, object))
}

fn is_in_scope(scope: &str, pod: &Value) -> bool {
    let is_terminating = || value_at(pod, "/spec/activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null());
    match scope {
        "Terminating" => is_terminating(),
        "NotTerminating" => !is_terminating(),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => !string_at(pod, "/spec/priorityClassName").is_empty(),
        "CrossNamespacePodAffinity" => has_cross_namespace_affinity(pod),
        _ => false,
    }
}

fn matches_expression(expression: &Value, pod: &Value) -> bool {
    let scope = string_at(expression, "/scopeName");
    if scope != "PriorityClass" {
        return is_in_scope(scope, pod);
    }
    let class = string_at(pod, "/spec/priorityClassName");
    let is_listed = array_at(expression, "/values").iter().any(|value| value == class);
    match string_at(expression, "/operator") {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => !class.is_empty(),
        "DoesNotExist" => class.is_empty(),
        _ => false,
    }
}

/// True if no container of a pod requests or limits CPU or memory.
fn is_best_effort(pod: &Value) -> bool {
    let mut containers = ["/spec/containers", "/spec/initContainers"].into_iter().flat_map(|list| array_at(pod, list));
    !containers.any(|container| {
        ["requests", "limits"].iter().any(|amounts| {
            let amounts = value_at(container, &format!("/resources/{amounts}"));
            ["cpu", "memory"].iter().any(|name| amounts.is_some_and(|amounts| amounts.get(name).is_some()))
        })
    })
}

/// True if a term of a pod's affinity selects namespaces.
fn has_cross_namespace_affinity(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|affinity| {
        let term_list = |name: &str| array_at(pod, &format!("/spec/affinity/{affinity}/{name}")).to_vec();
        let required = term_list("requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = term_list("preferredDuringSchedulingIgnoredDuringExecution");
        let preferred = preferred.iter().map(|term| term["podAffinityTerm"].clone());
        required
            .into_iter()
            .chain(preferred)
            .any(|term| !array_at(&term, "/namespaces").is_empty() || value_at(&term, "/namespaceSelector").is_some())
    })
}
