//! Changes that the server makes to an object after its fields were given to their managers: the first status, finalizers
//! and addresses. No field manager owns them.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::service_allocation::ServiceAllocator;
use crate::object::fields::{list, metadata, name, stamp, uid};
use crate::registry::resource::Resource;

/// Prepares a new object: its first status, its finalizers, its addresses.
pub(crate) fn prepare_for_create(
    allocator: &mut ServiceAllocator,
    now: Timestamp,
    resource: &Resource,
    object: &mut Value,
) {
    if resource.custom {
        return;
    }
    match resource.kind.as_str() {
        "Namespace" => {
            let mut own = list(object, "/spec/finalizers").to_vec();
            if !own.iter().any(|finalizer| finalizer == "kubernetes") {
                own.push(json!("kubernetes"));
            }
            object["spec"] = json!({ "finalizers": own });
            object["status"] = json!({"phase": "Active"});
        }
        "Pod" => {
            object["status"] = json!({"phase": "Pending", "qosClass": qos_class(object)});
        }
        "Service" => {
            object["status"] = json!({"loadBalancer": {}});
            allocator.give_addresses(None, object);
        }
        "DaemonSet" => count_templates(&Value::Null, object),
        "Job" => label_job(object),
        "PersistentVolumeClaim" => {
            object["status"] = json!({"phase": "Pending"});
            add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        "PersistentVolume" => {
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": stamp(now)});
            add_finalizer(object, "kubernetes.io/pv-protection");
        }
        "Node" => {
            let taint = json!({"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"});
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                let taints = spec.entry("taints").or_insert_with(|| json!([]));
                taints.as_array_mut().into_iter().for_each(|taints| taints.push(taint.clone()));
            }
        }
        "CustomResourceDefinition" => {
            let stored = storage_versions(object);
            object["status"] =
                json!({"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
        }
        _ => {}
    }
}

/// Prepares an object that replaces a live one.
pub(crate) fn prepare_for_update(
    allocator: &mut ServiceAllocator,
    resource: &Resource,
    live: &Value,
    object: &mut Value,
) {
    if resource.custom {
        return;
    }
    match resource.kind.as_str() {
        "Service" => allocator.give_addresses(Some(live), object),
        "DaemonSet" => count_templates(live, object),
        "CustomResourceDefinition" => {
            let added: Vec<Value> = storage_versions(object);
            if let Some(known) = object.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) {
                let new: Vec<Value> = added.into_iter().filter(|version| !known.contains(version)).collect();
                known.extend(new);
            }
        }
        "Namespace" => object["spec"] = live["spec"].clone(),
        _ => {}
    }
}

/// Counts the changes of a daemon set's template in a deprecated annotation, which only the server sets.
fn count_templates(live: &Value, object: &mut Value) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let known = live["metadata"]["annotations"].get(COUNT).and_then(Value::as_str);
    let known: u64 = known.and_then(|count| count.parse().ok()).unwrap_or_default();
    let changed = live.pointer("/spec/template") != object.pointer("/spec/template");
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(COUNT.to_owned(), json!((known + u64::from(changed)).to_string()));
    }
}

/// Returns the QoS class of a pod.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["/spec/containers", "/spec/initContainers"].map(|pointer| list(pod, pointer)).concat();
    let amounts = |container: &Value, of: &str| -> Map<String, Value> {
        let all =
            container.pointer(&format!("/resources/{of}")).and_then(Value::as_object).cloned().unwrap_or_default();
        all.into_iter().filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount != "0").collect()
    };
    let nothing =
        |container: &Value| amounts(container, "limits").is_empty() && amounts(container, "requests").is_empty();
    if containers.iter().all(nothing) {
        return "BestEffort";
    }
    let whole = |container: &Value| {
        let limits = amounts(container, "limits");
        limits.len() == 2 && limits == amounts(container, "requests")
    };
    if containers.iter().all(whole) { "Guaranteed" } else { "Burstable" }
}

/// Sets the selector and the labels of a Job from its UID and name.
fn label_job(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (identity, own) = (uid(job).to_owned(), name(job).to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", identity.clone()),
        ("batch.kubernetes.io/job-name", own.clone()),
        ("controller-uid", identity.clone()),
        ("job-name", own),
    ];
    let Some(spec) = job.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": identity}});
    if let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) {
        let own = metadata(template).entry("labels").or_insert_with(|| json!({}));
        labels.iter().for_each(|(key, value)| own[*key] = json!(value));
    }
    let own = metadata(job).entry("labels").or_insert_with(|| json!({}));
    if own.is_object() {
        labels.iter().for_each(|(key, value)| own[*key] = json!(value));
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|known| !known.iter().any(|known| known == finalizer)) {
        finalizers.push(json!(finalizer));
    }
}

fn storage_versions(definition: &Value) -> Vec<Value> {
    let stored = |version: &&Value| version.get("storage") == Some(&json!(true));
    list(definition, "/spec/versions")
        .iter()
        .filter(stored)
        .filter_map(|version| version.get("name").cloned())
        .collect()
}
