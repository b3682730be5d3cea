//! Requests and limits of whole pods.

use std::collections::BTreeMap;

use serde_json::Value;
use sindri_cel::Quantity;

use crate::object::fields::{array_at, string_at, value_at};

/// Returns the requests or limits of a whole pod: the sum of its containers, or those of an init container if they are larger.
pub(super) fn pod_amounts(pod: &Value, amount_type: &str) -> BTreeMap<String, Quantity> {
    let mut total = BTreeMap::new();
    for container in array_at(pod, "/spec/containers") {
        for (name, amount) in container_amounts(container, amount_type) {
            let sum = total.entry(name).or_insert_with(Quantity::zero);
            *sum = sum.plus(amount);
        }
    }
    let mut sidecars: BTreeMap<String, Quantity> = BTreeMap::new();
    for container in array_at(pod, "/spec/initContainers") {
        let is_sidecar = string_at(container, "/restartPolicy") == "Always";
        for (name, amount) in container_amounts(container, amount_type) {
            let beside = sidecars.get(&name).copied().unwrap_or_else(Quantity::zero).plus(amount);
            let sum = total.entry(name.clone()).or_insert_with(Quantity::zero);
            if is_sidecar {
                *sum = sum.plus(amount);
                sidecars.insert(name, beside);
            } else {
                *sum = (*sum).max(beside);
            }
        }
    }
    total
}

fn container_amounts(container: &Value, amount_type: &str) -> Vec<(String, Quantity)> {
    read_amounts(value_at(container, &format!("/resources/{amount_type}")))
}

pub(super) fn read_amounts(amounts: Option<&Value>) -> Vec<(String, Quantity)> {
    let amounts = amounts.and_then(Value::as_object).into_iter().flatten();
    amounts.filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?)?))).collect()
}
