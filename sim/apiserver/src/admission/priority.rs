//! Priorities and runtime classes of pods.

use serde_json::{Value, json};

use crate::object::fields::{array_at, push, string_at, value_at};
use crate::storage::store::Store;

/// Priority class fields of a pod.
struct Priority {
    class: String,
    value: i64,
    preemption_policy: String,
}

/// Sets the priority of a pod from its priority class, or from the default one. The error is the reason to reject it.
pub(super) fn set_priority(store: &Store, spec: &mut Value) -> Result<(), String> {
    let priority = find_priority(store, string_at(spec, "/priorityClassName"))?;
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority.value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            priority.value
        ));
    }
    let policy = string_at(spec, "/preemptionPolicy");
    if !policy.is_empty() && policy != priority.preemption_policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            priority.preemption_policy
        ));
    }
    if !priority.class.is_empty() {
        spec["priorityClassName"] = json!(priority.class);
    }
    spec["priority"] = json!(priority.value);
    spec["preemptionPolicy"] = json!(priority.preemption_policy);
    Ok(())
}

/// Gives a changed pod the priority that it has, unless the change sets it.
pub(super) fn keep_priority(live: &Value, spec: &mut Value) {
    for field in ["priority", "preemptionPolicy"] {
        let (known, given) = (value_at(live, &format!("/spec/{field}")), value_at(spec, &format!("/{field}")));
        if let (Some(known), None | Some(Value::Null)) = (known, given) {
            spec[field] = known.clone();
        }
    }
}

fn find_priority(store: &Store, name: &str) -> Result<Priority, String> {
    let read = |class: &Value| Priority {
        class: string_at(class, "/metadata/name").to_owned(),
        value: value_at(class, "/value").and_then(Value::as_i64).unwrap_or_default(),
        preemption_policy: match string_at(class, "/preemptionPolicy") {
            "" => "PreemptLowerPriority".to_owned(),
            policy => policy.to_owned(),
        },
    };
    if !name.is_empty() {
        let class = store.find("scheduling.k8s.io", "priorityclasses", None, name);
        return class.map(|class| read(class)).ok_or_else(|| format!("no PriorityClass with name {name} was found"));
    }
    let classes = store.collection("scheduling.k8s.io", "priorityclasses").into_iter().flat_map(|all| all.values());
    let defaults =
        classes.filter(|class| class.object["globalDefault"] == json!(true)).map(|class| read(&class.object));
    Ok(defaults.min_by_key(|class| class.value).unwrap_or_else(|| read(&Value::Null)))
}

/// Adds the overhead and the scheduling of its runtime class to a pod. The error is the reason to reject it.
pub(super) fn apply_runtime_class(store: &Store, spec: &mut Value) -> Result<(), String> {
    let name = string_at(spec, "/runtimeClassName").to_owned();
    if name.is_empty() {
        return Ok(());
    }
    let class = store.find("node.k8s.io", "runtimeclasses", None, &name);
    let class = class.ok_or_else(|| format!("pod rejected: RuntimeClass {name:?} not found"))?;
    let overhead = value_at(class, "/overhead/podFixed").filter(|overhead| !overhead.is_null());
    match (overhead, value_at(spec, "/overhead").filter(|overhead| !overhead.is_null())) {
        (Some(overhead), None) => spec["overhead"] = overhead.clone(),
        (overhead, Some(given)) if overhead != Some(given) => {
            return Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned());
        }
        _ => {}
    }
    for (key, value) in value_at(class, "/scheduling/nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        match spec["nodeSelector"].get(key) {
            Some(given) if given != value => {
                let (value, given) = (value.as_str().unwrap_or_default(), given.as_str().unwrap_or_default());
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
                ));
            }
            _ => spec["nodeSelector"][key] = value.clone(),
        }
    }
    for toleration in array_at(class, "/scheduling/tolerations") {
        if !array_at(spec, "/tolerations").contains(toleration) {
            push(spec, "tolerations", toleration.clone());
        }
    }
    Ok(())
}
