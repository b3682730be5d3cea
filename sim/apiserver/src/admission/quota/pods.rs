//! Requests and limits of pods in quotas.

use std::collections::BTreeMap;

use serde_json::Value;
use sindri_cel::Quantity;

use super::amounts::{Usage, whole};
use crate::admission::pod_amounts::{pod_amounts, read_amounts};
use crate::object::fields::{array_at, string_at, value_at};

/// Resources that every container must specify if a quota limits them.
const REQUIRED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// Returns the amounts that a pod uses. A pod that has ended uses none.
pub(super) fn usage_of_pod(pod: &Value) -> Usage {
    let mut usage = Usage::new();
    if matches!(string_at(pod, "/status/phase"), "Succeeded" | "Failed") {
        return usage;
    }
    usage.insert("pods".to_owned(), whole(1));
    for (name, amount) in amounts_with_overhead(pod, "requests") {
        if has_plain_name(&name) {
            usage.insert(name.clone(), amount);
        }
        usage.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in amounts_with_overhead(pod, "limits") {
        usage.insert(format!("limits.{name}"), amount);
    }
    usage
}

/// True for resources whose requests can be limited without the prefix `requests.`.
fn has_plain_name(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

/// Returns the requests or limits of a pod with the overhead of its runtime class.
fn amounts_with_overhead(pod: &Value, amount_type: &str) -> BTreeMap<String, Quantity> {
    let mut total = pod_amounts(pod, amount_type);
    for (name, amount) in read_amounts(value_at(pod, "/spec/overhead")) {
        if let Some(sum) = total.get_mut(&name) {
            *sum = sum.plus(amount);
        }
    }
    total
}

/// Lists the requests and limits that a quota requires and the containers of a pod do not specify.
pub(super) fn missing_amounts<'a>(limited: impl Iterator<Item = &'a str>, pod: &Value) -> Vec<String> {
    let mut limited: Vec<&str> = limited.filter(|name| REQUIRED.contains(name)).collect();
    limited.sort_unstable();
    let mut missing = Vec::new();
    for name in limited {
        let (amount_type, resource) = name.split_once('.').unwrap_or(("requests", name));
        let pointer = format!("/resources/{amount_type}/{resource}");
        let containers = ["/spec/containers", "/spec/initContainers"].into_iter().flat_map(|list| array_at(pod, list));
        let mut without: Vec<&str> = containers
            .filter(|container| container.pointer(&pointer).is_none())
            .map(|container| string_at(container, "/name"))
            .collect();
        without.sort_unstable();
        if !without.is_empty() {
            missing.push(format!("{name} for: {}", without.join(",")));
        }
    }
    missing
}
