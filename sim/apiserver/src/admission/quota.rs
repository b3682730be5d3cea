//! ResourceQuota: quantities in use, and the check of a new object.

use serde_json::{Map, Value, json};
use sindri_cel::Quantity;

use crate::object::fields::{array_at, string_at};
use crate::storage::store::Store;

/// Returns the usage in a namespace of the resources that a quota limits.
pub(crate) fn quota_usage(store: &Store, namespace: &str, hard: &Value) -> Value {
    let mut used = Map::new();
    for name in hard.as_object().into_iter().flatten().map(|(name, _)| name) {
        let sum = store
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
pub(crate) fn quota_violation(
    store: &Store,
    namespace: &str,
    group: &str,
    plural: &str,
    object: &Value,
) -> Option<String> {
    let collection = store.collection("", "resourcequotas").into_iter().flat_map(|collection| collection.values());
    for entry in collection.filter(|entry| entry.key.namespace.as_deref() == Some(namespace)) {
        let quota = &entry.key.name;
        let hard = entry.object.pointer("/spec/hard").cloned().unwrap_or_default();
        let missing = missing_amounts(&hard, group, plural, object);
        if !missing.is_empty() {
            return Some(format!("failed quota: {quota}: must specify {}", missing.join("; ")));
        }
        let used = quota_usage(store, namespace, &hard);
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
    array_at(object, "/spec/containers")
        .iter()
        .filter_map(|container| Quantity::parse(string_at(container, &pointer)))
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
        let containers: Vec<&str> = array_at(object, "/spec/containers")
            .iter()
            .filter(|container| container.pointer(&pointer).is_none())
            .map(|container| string_at(container, "/name"))
            .collect();
        if !containers.is_empty() {
            missing.push(format!("{name} for: {}", containers.join(",")));
        }
    }
    missing
}
