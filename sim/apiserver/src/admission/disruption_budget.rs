//! PodDisruptionBudget: healthy pods, and the check of an eviction.

use serde_json::Value;

use crate::object::fields::{array_at, is_deleting, string_at};
use crate::storage::store::Store;

pub(crate) const BUDGETS: (&str, &str) = ("policy", "poddisruptionbudgets");

/// Pod counts of a pod disruption budget.
pub(crate) struct BudgetCounts {
    /// Number of ready pods.
    pub(crate) healthy: i64,
    /// Number of pods that must stay ready.
    pub(crate) desired: i64,
    /// Number of selected pods.
    pub(crate) expected: i64,
}

/// Counts the pods of a pod disruption budget.
pub(crate) fn budget_counts(store: &Store, budget: &Value) -> BudgetCounts {
    let pods = selected_pods(store, budget);
    let expected = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let healthy = pods.iter().filter(|pod| is_ready(pod)).count();
    let resolve = |value: &Value| match value.as_str().and_then(|text| text.strip_suffix('%')) {
        Some(percent) => {
            let percent: i64 = percent.parse().unwrap_or_default();
            (expected.saturating_mul(percent).saturating_add(99)) / 100
        }
        None => value.as_i64().unwrap_or_default(),
    };
    let desired = match (budget.pointer("/spec/minAvailable"), budget.pointer("/spec/maxUnavailable")) {
        (Some(min_available), _) => resolve(min_available),
        (None, Some(max_unavailable)) => (expected - resolve(max_unavailable)).max(0),
        (None, None) => 0,
    };
    BudgetCounts { healthy: i64::try_from(healthy).unwrap_or(i64::MAX), desired, expected }
}

fn selected_pods<'a>(store: &'a Store, budget: &Value) -> Vec<&'a Value> {
    let namespace = string_at(budget, "/metadata/namespace");
    let labels = budget.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let matches = |pod: &Value| {
        let pod_labels = pod.pointer("/metadata/labels");
        labels.into_iter().flatten().all(|(key, value)| pod_labels.and_then(|labels| labels.get(key)) == Some(value))
    };
    let collection = store.collection("", "pods").into_iter().flat_map(|collection| collection.values());
    let in_namespace = collection.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
    in_namespace.map(|entry| &***entry.object).filter(|pod| matches(pod) && !is_deleting(pod)).collect()
}

/// Returns the first budget that forbids the eviction of a pod, with its counts.
pub(crate) fn blocking_budget(store: &Store, namespace: &str, pod: &Value) -> Option<(String, BudgetCounts)> {
    let collection = store.collection(BUDGETS.0, BUDGETS.1).into_iter().flat_map(|collection| collection.values());
    let in_namespace = collection.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
    in_namespace
        .map(|entry| (entry.key.name.clone(), &entry.object))
        .filter(|(_, budget)| selected_pods(store, budget).contains(&pod))
        .map(|(name, budget)| (name, budget_counts(store, budget)))
        .find(|(_, counts)| counts.healthy - counts.desired < 1)
}

fn is_ready(pod: &Value) -> bool {
    array_at(pod, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
