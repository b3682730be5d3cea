//! Controllers that count: what a quota limits, and how many pods a budget has to spare.

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

/// What a budget has, and what it needs.
pub(crate) struct Spare {
    pub(crate) healthy: i64,
    pub(crate) desired: i64,
    pub(crate) expected: i64,
}

impl ApiServer {
    /// Plans the counting that a change in a namespace makes necessary.
    pub(super) fn plan_counting(&mut self, now: Timestamp, namespace: &str) {
        for (group, plural) in [("", "resourcequotas"), BUDGETS] {
            let shelf = self.store.shelf(group, plural).into_iter().flat_map(|shelf| shelf.values());
            let here = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
            let keys: Vec<StoredKey> = here.map(|entry| StoredKey::clone(&entry.key)).collect();
            for key in keys {
                self.schedule_after(now, self.lags.namespace_furniture, Task::Count(key));
            }
        }
    }

    /// Counts for a quota or a budget.
    pub(super) fn count(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(live) = self.stored(key).cloned() else { return };
        let mut object = Value::clone(&live);
        if key.plural == "resourcequotas" {
            let hard = live.pointer("/spec/hard").cloned().unwrap_or_else(|| json!({}));
            let used = self.used(key.namespace.as_deref().unwrap_or_default(), &hard);
            object["status"] = json!({"hard": hard, "used": used});
        } else {
            let spare = self.spare(&live);
            let allowed = (spare.healthy - spare.desired).max(0);
            let generation = live.pointer("/metadata/generation").cloned().unwrap_or_default();
            let at = stamp(now);
            let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
            set_condition(&mut object, &at, "DisruptionAllowed", allowed > 0, reason, "");
            for condition in
                object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
            {
                condition["observedGeneration"] = generation.clone();
            }
            object["status"]["currentHealthy"] = json!(spare.healthy);
            object["status"]["desiredHealthy"] = json!(spare.desired);
            object["status"]["disruptionsAllowed"] = json!(allowed);
            object["status"]["expectedPods"] = json!(spare.expected);
            object["status"]["observedGeneration"] = generation;
        }
        let mut who = Authorship::controller("counting-controller", Verb::Update);
        who.subresource = "status";
        self.write_as(now, &who, "kube-controller-manager", key, &object);
    }

    /// How much of what a quota limits is used.
    fn used(&self, namespace: &str, hard: &Value) -> Value {
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

    /// Why a quota does not allow a new object.
    pub(crate) fn over_quota(&self, namespace: &str, group: &str, plural: &str, object: &Value) -> Option<String> {
        let shelf = self.store.shelf("", "resourcequotas").into_iter().flat_map(|shelf| shelf.values());
        for entry in shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace)) {
            let quota = &entry.key.name;
            let hard = entry.object.pointer("/spec/hard").cloned().unwrap_or_default();
            let missing = unspecified(&hard, group, plural, object);
            if !missing.is_empty() {
                return Some(format!("failed quota: {quota}: must specify {}", missing.join("; ")));
            }
            let used = self.used(namespace, &hard);
            let (mut asked, mut taken, mut limited) = (Vec::new(), Vec::new(), Vec::new());
            for (name, limit) in hard.as_object().into_iter().flatten() {
                let wanted = amount_of(name, group, plural, object);
                let amount = |value: &Value| value.as_str().and_then(Quantity::parse).unwrap_or_else(Quantity::zero);
                let (limit, now) = (amount(limit), amount(&used[name]));
                if wanted > Quantity::zero() && now.plus(wanted) > limit {
                    asked.push(format!("{name}={}", wanted.canonical()));
                    taken.push(format!("{name}={}", now.canonical()));
                    limited.push(format!("{name}={}", limit.canonical()));
                }
            }
            if !asked.is_empty() {
                let (asked, taken, limited) = (asked.join(","), taken.join(","), limited.join(","));
                return Some(format!("exceeded quota: {quota}, requested: {asked}, used: {taken}, limited: {limited}"));
            }
        }
        None
    }

    /// How many healthy pods a budget has, and how many it needs.
    fn spare(&self, budget: &Value) -> Spare {
        let pods = self.selected_pods(budget);
        let expected = i64::try_from(pods.len()).unwrap_or(i64::MAX);
        let healthy = pods.iter().filter(|pod| is_ready(pod)).count();
        let share = |value: &Value| match value.as_str().and_then(|text| text.strip_suffix('%')) {
            Some(percent) => {
                let percent: i64 = percent.parse().unwrap_or_default();
                (expected.saturating_mul(percent).saturating_add(99)) / 100
            }
            None => value.as_i64().unwrap_or_default(),
        };
        let desired = match (budget.pointer("/spec/minAvailable"), budget.pointer("/spec/maxUnavailable")) {
            (Some(least), _) => share(least),
            (None, Some(most)) => (expected - share(most)).max(0),
            (None, None) => 0,
        };
        Spare { healthy: i64::try_from(healthy).unwrap_or(i64::MAX), desired, expected }
    }

    fn selected_pods(&self, budget: &Value) -> Vec<&Value> {
        let namespace = text(budget, "/metadata/namespace");
        let labels = budget.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
        let fits = |pod: &Value| {
            let own = pod.pointer("/metadata/labels");
            labels.into_iter().flatten().all(|(key, value)| own.and_then(|own| own.get(key)) == Some(value))
        };
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        let here = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        here.map(|entry| &***entry.object).filter(|pod| fits(pod) && !is_deleting(pod)).collect()
    }

    /// The budget that does not let a pod go, with what it has and needs.
    pub(crate) fn budget_against(&self, namespace: &str, pod: &Value) -> Option<(String, Spare)> {
        let shelf = self.store.shelf(BUDGETS.0, BUDGETS.1).into_iter().flat_map(|shelf| shelf.values());
        let here = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        here.map(|entry| (entry.key.name.clone(), &entry.object))
            .filter(|(_, budget)| self.selected_pods(budget).contains(&pod))
            .map(|(name, budget)| (name, self.spare(budget)))
            .find(|(_, spare)| spare.healthy - spare.desired < 1)
    }
}

fn is_ready(pod: &Value) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// How much of a limited resource an object takes.
fn amount_of(name: &str, group: &str, plural: &str, object: &Value) -> Quantity {
    let one = || Quantity::parse("1").unwrap_or_else(Quantity::zero);
    let counted = if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") };
    if name == counted || group.is_empty() && name == plural {
        return one();
    }
    if !(group.is_empty() && plural == "pods") {
        return Quantity::zero();
    }
    let (kind, resource) = match name.split_once('.') {
        Some((kind @ ("requests" | "limits"), resource)) => (kind, resource),
        None if matches!(name, "cpu" | "memory") => ("requests", name),
        _ => return Quantity::zero(),
    };
    let pointer = format!("/resources/{kind}/{resource}");
    list(object, "/spec/containers")
        .iter()
        .filter_map(|container| Quantity::parse(text(container, &pointer)))
        .fold(Quantity::zero(), Quantity::plus)
}

/// What the containers of a pod must say and do not.
fn unspecified(hard: &Value, group: &str, plural: &str, object: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    if !(group.is_empty() && plural == "pods") {
        return missing;
    }
    for name in hard.as_object().into_iter().flatten().map(|(name, _)| name) {
        let Some((kind @ ("requests" | "limits"), resource)) = name.split_once('.') else { continue };
        let pointer = format!("/resources/{kind}/{resource}");
        let silent: Vec<&str> = list(object, "/spec/containers")
            .iter()
            .filter(|container| container.pointer(&pointer).is_none())
            .map(|container| text(container, "/name"))
            .collect();
        if !silent.is_empty() {
            missing.push(format!("{name} for: {}", silent.join(",")));
        }
    }
    missing
}
