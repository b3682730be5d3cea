//! Controllers that count: the usage of resource quotas, and the healthy pods of pod disruption budgets.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set_condition;
use crate::object::fields::{is_deleting, list, stamp, text};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::state::schedule::Task;
use crate::storage::journal::Verb;
use sindri_cel::Quantity;

const BUDGETS: (&str, &str) = ("policy", "poddisruptionbudgets");

/// Pod counts of a pod disruption budget.
pub(crate) struct BudgetCounts {
    /// Number of ready pods.
    pub(crate) healthy: i64,
    /// Number of pods that must stay ready.
    pub(crate) desired: i64,
    /// Number of selected pods.
    pub(crate) expected: i64,
}

impl ApiServer {
    /// Schedules the recount that a change in a namespace requires.
    pub(super) fn schedule_counting(&mut self, now: Timestamp, namespace: &str) {
        for (group, plural) in [("", "resourcequotas"), BUDGETS] {
            let shelf = self.store.shelf(group, plural).into_iter().flat_map(|shelf| shelf.values());
            let in_namespace = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
            let keys: Vec<StoredKey> = in_namespace.map(|entry| StoredKey::clone(&entry.key)).collect();
            for key in keys {
                self.schedule_after(now, self.lags.namespace_furniture, Task::Count(key));
            }
        }
    }

    /// Updates the status of a resource quota or a pod disruption budget.
    pub(super) fn update_counts(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(live) = self.stored(key).cloned() else { return };
        let mut object = Value::clone(&live);
        if key.plural == "resourcequotas" {
            let hard = live.pointer("/spec/hard").cloned().unwrap_or_else(|| json!({}));
            let used = self.quota_usage(key.namespace.as_deref().unwrap_or_default(), &hard);
            object["status"] = json!({"hard": hard, "used": used});
        } else {
            let counts = self.budget_counts(&live);
            let allowed = (counts.healthy - counts.desired).max(0);
            let generation = live.pointer("/metadata/generation").cloned().unwrap_or_default();
            let at = stamp(now);
            let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
            set_condition(&mut object, &at, "DisruptionAllowed", allowed > 0, reason, "");
            for condition in
                object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
            {
                condition["observedGeneration"] = generation.clone();
            }
            object["status"]["currentHealthy"] = json!(counts.healthy);
            object["status"]["desiredHealthy"] = json!(counts.desired);
            object["status"]["disruptionsAllowed"] = json!(allowed);
            object["status"]["expectedPods"] = json!(counts.expected);
            object["status"]["observedGeneration"] = generation;
        }
        let mut who = Authorship::controller("counting-controller", Verb::Update);
        who.subresource = "status";
        self.write_as(now, &who, "kube-controller-manager", key, &object);
    }

    /// Returns the usage in a namespace of the resources that a quota limits.
    fn quota_usage(&self, namespace: &str, hard: &Value) -> Value {
        let mut used = Map::new();
        for name in hard.as_object().into_iter().flatten().map(|(name, _)| name) {
            let sum = self
                .store
                .all()
                .filter(|entry| entry.key.namespace.as_deref() == Some(namespace))
                .fold(Quantity::zero(), |sum, entry| {
                    sum.plus(amount_of(name, &entry.key.group, &entry.key.plural, &entry.object))
                });
            used.insert(name.clone(), json!(sum.canonical()));
        }
        Value::Object(used)
    }

    /// Returns the reason for which a quota forbids a new object, in the words of the real server.
    pub(crate) fn quota_violation(&self, namespace: &str, group: &str, plural: &str, object: &Value) -> Option<String> {
        let shelf = self.store.shelf("", "resourcequotas").into_iter().flat_map(|shelf| shelf.values());
        for entry in shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace)) {
            let quota = &entry.key.name;
            let hard = entry.object.pointer("/spec/hard").cloned().unwrap_or_default();
            let missing = missing_amounts(&hard, group, plural, object);
            if !missing.is_empty() {
                return Some(format!("failed quota: {quota}: must specify {}", missing.join("; ")));
            }
            let used = self.quota_usage(namespace, &hard);
            let (mut requested, mut in_use, mut limited) = (Vec::new(), Vec::new(), Vec::new());
            for (name, limit) in hard.as_object().into_iter().flatten() {
                let amount_requested = amount_of(name, group, plural, object);
                let amount = |value: &Value| value.as_str().and_then(Quantity::parse).unwrap_or_else(Quantity::zero);
                let (limit, now) = (amount(limit), amount(&used[name]));
                if amount_requested > Quantity::zero() && now.plus(amount_requested) > limit {
                    requested.push(format!("{name}={}", amount_requested.canonical()));
                    in_use.push(format!("{name}={}", now.canonical()));
                    limited.push(format!("{name}={}", limit.canonical()));
                }
            }
            if !requested.is_empty() {
                let (requested, in_use, limited) = (requested.join(","), in_use.join(","), limited.join(","));
                return Some(format!(
                    "exceeded quota: {quota}, requested: {requested}, used: {in_use}, limited: {limited}"
                ));
            }
        }
        None
    }

    /// Counts the pods of a pod disruption budget.
    fn budget_counts(&self, budget: &Value) -> BudgetCounts {
        let pods = self.selected_pods(budget);
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

    fn selected_pods(&self, budget: &Value) -> Vec<&Value> {
        let namespace = text(budget, "/metadata/namespace");
        let labels = budget.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
        let matches = |pod: &Value| {
            let pod_labels = pod.pointer("/metadata/labels");
            labels
                .into_iter()
                .flatten()
                .all(|(key, value)| pod_labels.and_then(|labels| labels.get(key)) == Some(value))
        };
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        let in_namespace = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        in_namespace.map(|entry| &***entry.object).filter(|pod| matches(pod) && !is_deleting(pod)).collect()
    }

    /// Returns the first budget that forbids the eviction of a pod, with its counts.
    pub(crate) fn blocking_budget(&self, namespace: &str, pod: &Value) -> Option<(String, BudgetCounts)> {
        let shelf = self.store.shelf(BUDGETS.0, BUDGETS.1).into_iter().flat_map(|shelf| shelf.values());
        let in_namespace = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        in_namespace
            .map(|entry| (entry.key.name.clone(), &entry.object))
            .filter(|(_, budget)| self.selected_pods(budget).contains(&pod))
            .map(|(name, budget)| (name, self.budget_counts(budget)))
            .find(|(_, counts)| counts.healthy - counts.desired < 1)
    }
}

fn is_ready(pod: &Value) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns the amount of a limited resource that an object uses.
fn amount_of(name: &str, group: &str, plural: &str, object: &Value) -> Quantity {
    let one = || Quantity::parse("1").unwrap_or_else(Quantity::zero);
    let count_name = if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") };
    if name == count_name || group.is_empty() && name == plural {
        return one();
    }
    if !(group.is_empty() && plural == "pods") {
        return Quantity::zero();
    }
    let (amount_type, resource) = match name.split_once('.') {
        Some((amount_type @ ("requests" | "limits"), resource)) => (amount_type, resource),
        None if matches!(name, "cpu" | "memory") => ("requests", name),
        _ => return Quantity::zero(),
    };
    let pointer = format!("/resources/{amount_type}/{resource}");
    list(object, "/spec/containers")
        .iter()
        .filter_map(|container| Quantity::parse(text(container, &pointer)))
        .fold(Quantity::zero(), Quantity::plus)
}

/// Lists the requests and limits that a quota requires and the containers of a pod do not specify.
fn missing_amounts(hard: &Value, group: &str, plural: &str, object: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    if !(group.is_empty() && plural == "pods") {
        return missing;
    }
    for name in hard.as_object().into_iter().flatten().map(|(name, _)| name) {
        let Some((amount_type @ ("requests" | "limits"), resource)) = name.split_once('.') else { continue };
        let pointer = format!("/resources/{amount_type}/{resource}");
        let containers: Vec<&str> = list(object, "/spec/containers")
            .iter()
            .filter(|container| container.pointer(&pointer).is_none())
            .map(|container| text(container, "/name"))
            .collect();
        if !containers.is_empty() {
            missing.push(format!("{name} for: {}", containers.join(",")));
        }
    }
    missing
}
