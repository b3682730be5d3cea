//! ResourceQuota: quantities in use, and the check of a new or changed object.

mod amounts;
mod pods;
mod scopes;
mod usage;

use serde_json::{Map, Value, json};
use sindri_cel::Quantity;

use self::amounts::Usage;
use self::scopes::matches_scopes;
use self::usage::usage_of;
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Returns the usage in a namespace of the resources that a quota limits.
pub(crate) fn quota_usage(store: &Store, namespace: &str, quota: &Value) -> Value {
    let mut sum = Usage::new();
    for entry in store.all().filter(|entry| entry.key.namespace.as_deref() == Some(namespace)) {
        let (group, plural) = (entry.key.group.as_str(), entry.key.plural.as_str());
        if matches_scopes(quota, group, plural, &entry.object) {
            add(&mut sum, usage_of(group, plural, &entry.object));
        }
    }
    let amount = |name: &String| sum.get(name).copied().unwrap_or_else(Quantity::zero);
    let used = limits(quota).map(|(name, _)| (name.clone(), json!(amount(name).canonical())));
    Value::Object(used.collect::<Map<String, Value>>())
}

/// Returns the reason for which a quota forbids a new or changed object, in the words of the real server.
pub(crate) fn quota_violation(
    store: &Store,
    namespace: &str,
    resource: &Resource,
    live: Option<&Value>,
    object: &Value,
) -> Option<String> {
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    // Only changes of these kinds change the usage.
    if live.is_some() && !(group.is_empty() && ["services", "persistentvolumeclaims"].contains(&plural)) {
        return None;
    }
    let quotas = store.in_namespace("", "resourcequotas", namespace);
    let matching = quotas.filter(|entry| matches_scopes(&entry.object, group, plural, object));
    let (added, before) =
        (usage_of(group, plural, object), live.map(|live| usage_of(group, plural, live)).unwrap_or_default());
    for entry in matching {
        let (quota, name) = (&entry.object, &entry.key.name);
        let missing = if live.is_none() && resource.is("", "pods") {
            pods::missing_amounts(limits(quota).map(|(name, _)| name.as_str()), object)
        } else {
            Vec::new()
        };
        if !missing.is_empty() {
            return Some(format!("failed quota: {name}: must specify {}", missing.join("; ")));
        }
        if let Some(excess) = excess(quota, &added, &before, || quota_usage(store, namespace, quota)) {
            return Some(format!("exceeded quota: {name}, {excess}"));
        }
    }
    None
}

/// Describes the limits of a quota that a change of the usage would exceed.
fn excess(quota: &Value, added: &Usage, before: &Usage, used: impl FnOnce() -> Value) -> Option<String> {
    let amount = |usage: &Usage, name: &str| usage.get(name).copied().unwrap_or_else(Quantity::zero);
    let changed: Vec<(&String, &Value, Quantity)> = limits(quota)
        .map(|(name, limit)| (name, limit, amount(added, name).minus(amount(before, name))))
        .filter(|(.., change)| *change > Quantity::zero())
        .collect();
    if changed.is_empty() {
        return None;
    }
    let used = used();
    let (mut requested, mut in_use, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    for (name, limit, change) in changed {
        let parse = |value: &Value| value.as_str().and_then(Quantity::parse).unwrap_or_else(Quantity::zero);
        let (limit, now) = (parse(limit), parse(&used[name]));
        if now.plus(change) > limit {
            requested.push(format!("{name}={}", change.canonical()));
            in_use.push(format!("{name}={}", now.canonical()));
            limited.push(format!("{name}={}", limit.canonical()));
        }
    }
    let (requested, in_use, limited) = (requested.join(","), in_use.join(","), limited.join(","));
    (!requested.is_empty()).then(|| format!("requested: {requested}, used: {in_use}, limited: {limited}"))
}

/// Returns the limits of a quota.
fn limits(quota: &Value) -> impl Iterator<Item = (&String, &Value)> {
    quota.pointer("/spec/hard").and_then(Value::as_object).into_iter().flatten()
}

fn add(sum: &mut Usage, usage: Usage) {
    for (name, amount) in usage {
        let total = sum.entry(name).or_insert_with(Quantity::zero);
        *total = total.plus(amount);
    }
}
