//! PodDisruptionBudget: healthy pods, and the check of an eviction.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::fields::{array_at, group_version, is_deleting, string_at, uid, value_at};
use crate::object::label_selectors::matches_selector;
use crate::object::owners::controller_of;
use crate::storage::store::Store;

pub(crate) const BUDGETS: (&str, &str) = ("policy", "poddisruptionbudgets");

/// Pod counts of a pod disruption budget.
pub(crate) struct BudgetCounts {
    /// Number of ready pods.
    pub(crate) healthy: i64,
    /// Number of pods that must stay ready.
    pub(crate) desired: i64,
    /// Number of pods that should exist.
    pub(crate) expected: i64,
}

impl BudgetCounts {
    /// Returns the number of pods that may be evicted now.
    pub(crate) fn allowed(&self) -> i64 {
        if self.expected <= 0 { 0 } else { (self.healthy - self.desired).max(0) }
    }
}

/// Result of the check of an eviction.
pub(crate) enum EvictionDecision {
    Allowed,
    /// This budget forbids it.
    Forbidden(String, BudgetCounts),
    /// More than one budget selects the pod.
    SeveralBudgets,
}

/// Counts the pods of a pod disruption budget.
pub(crate) fn budget_counts(store: &Store, budget: &Value) -> BudgetCounts {
    let pods = selected_pods(store, budget);
    let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let healthy = pods.iter().filter(|pod| is_ready(pod)).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let bound = |pointer: &str| value_at(budget, pointer).filter(|bound| !bound.is_null());
    let (expected, desired) = match (bound("/spec/minAvailable"), bound("/spec/maxUnavailable")) {
        (Some(number), _) if number.is_i64() => (present, number.as_i64().unwrap_or_default()),
        (Some(percent), _) => {
            let expected = expected_count(store, &pods);
            (expected, scaled(percent, expected))
        }
        (None, Some(bound)) => {
            let expected = expected_count(store, &pods);
            (expected, (expected - scaled(bound, expected)).max(0))
        }
        (None, None) => (present, 0),
    };
    BudgetCounts { healthy, desired, expected }
}

/// Returns a number, or this percentage of the expected pods, rounded up.
fn scaled(bound: &Value, expected: i64) -> i64 {
    match bound.as_str().and_then(|text| text.strip_suffix('%')) {
        Some(percent) => {
            let percent: i64 = percent.parse().unwrap_or_default();
            expected.saturating_mul(percent).saturating_add(99) / 100
        }
        None => bound.as_i64().unwrap_or_default(),
    }
}

/// Returns the number of pods that the controllers of these pods should run. A pod without a controller does not count; one
/// whose controller has no replicas makes the number unknown, and then nothing may be evicted.
fn expected_count(store: &Store, pods: &[&Value]) -> i64 {
    let mut replicas: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(reference) = controller_of(pod) else { continue };
        let Some((owner_uid, count)) = find_scale(store, string_at(pod, "/metadata/namespace"), reference) else {
            return 0;
        };
        replicas.insert(owner_uid, count);
    }
    replicas.values().fold(0, |sum, count| sum.saturating_add(*count))
}

/// Returns the UID and the replicas of the controller of a pod; that of a Deployment's ReplicaSet is the Deployment.
fn find_scale(store: &Store, namespace: &str, reference: &Value) -> Option<(String, i64)> {
    let owner = find_owner(store, namespace, reference)?;
    let owner = controller_of(owner).and_then(|above| find_owner(store, namespace, above)).unwrap_or(owner);
    let count = match value_at(owner, "/spec/replicas") {
        Some(count) => count.as_i64()?,
        None => return None,
    };
    Some((uid(owner).to_owned(), count))
}

/// Returns an owner. The plural of each kind of workload is its lowercase name and an s.
fn find_owner<'a>(store: &'a Store, namespace: &str, reference: &Value) -> Option<&'a Value> {
    let (group, _) = group_version(string_at(reference, "/apiVersion"));
    let plural = format!("{}s", string_at(reference, "/kind").to_lowercase());
    let owner = store.find(group, &plural, Some(namespace), string_at(reference, "/name"))?;
    (uid(owner) == string_at(reference, "/uid")).then_some(&**owner)
}

fn selected_pods<'a>(store: &'a Store, budget: &'a Value) -> Vec<&'a Value> {
    let pods = store.in_namespace("", "pods", string_at(budget, "/metadata/namespace"));
    pods.map(|entry| &***entry.object).filter(|pod| selects(budget, pod) && !is_deleting(pod)).collect()
}

/// True if a budget selects a pod. An empty selector selects every pod of the namespace, a missing one none.
fn selects(budget: &Value, pod: &Value) -> bool {
    let selector = value_at(budget, "/spec/selector").filter(|selector| !selector.is_null());
    let is_empty = selector.is_some_and(|selector| {
        array_at(selector, "/matchExpressions").is_empty()
            && value_at(selector, "/matchLabels").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
    });
    is_empty || matches_selector(selector, pod)
}

/// Decides whether the disruption budgets of a namespace allow the eviction of a pod.
pub(crate) fn decide_eviction(store: &Store, namespace: &str, pod: &Value) -> EvictionDecision {
    // A pod that does not run is no loss.
    if is_deleting(pod) || matches!(string_at(pod, "/status/phase"), "Pending" | "Succeeded" | "Failed") {
        return EvictionDecision::Allowed;
    }
    let mut selecting = store.in_namespace(BUDGETS.0, BUDGETS.1, namespace).filter(|entry| selects(&entry.object, pod));
    let Some(entry) = selecting.next() else { return EvictionDecision::Allowed };
    if selecting.next().is_some() {
        return EvictionDecision::SeveralBudgets;
    }
    let counts = budget_counts(store, &entry.object);
    let always = string_at(&entry.object, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
    let is_healthy = counts.desired > 0 && counts.healthy >= counts.desired;
    if !is_ready(pod) && (always || is_healthy) || counts.allowed() > 0 {
        return EvictionDecision::Allowed;
    }
    EvictionDecision::Forbidden(entry.key.name.clone(), counts)
}

fn is_ready(pod: &Value) -> bool {
    array_at(pod, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
