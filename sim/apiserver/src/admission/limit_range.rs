//! LimitRange: default requests and limits of containers, and their maximum.

use serde_json::{Value, json};
use sindri_cel::Quantity;

use crate::object::fields::{array_at, metadata, string_at};
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Sets the default requests and limits of a pod's containers. Returns the violation of a maximum.
pub(crate) fn apply_limit_ranges(
    store: &Store,
    namespace: &str,
    resource: &Resource,
    pod: &mut Value,
) -> Option<String> {
    if !resource.is("", "pods") {
        return None;
    }
    let collection = store.collection("", "limitranges").into_iter().flat_map(|collection| collection.values());
    let here = collection.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
    let items: Vec<Value> = here.flat_map(|entry| array_at(&entry.object, "/spec/limits").to_vec()).collect();
    let mut set = Vec::new();
    for item in items.iter().filter(|item| string_at(item, "/type") == "Container") {
        let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            set.extend(limit_container(item, container));
            if let Some(reason) = limit_violation(item, container) {
                return Some(reason);
            }
        }
    }
    if !set.is_empty() {
        let annotations = metadata(pod).entry("annotations").or_insert_with(|| json!({}));
        annotations["kubernetes.io/limit-ranger"] = json!(format!("LimitRanger plugin set: {}", set.join("; ")));
    }
    None
}

/// Sets the requests and limits that a container does not specify, and describes them.
fn limit_container(item: &Value, container: &mut Value) -> Vec<String> {
    let mut set = Vec::new();
    let own = string_at(container, "/name").to_owned();
    for (from, to, word) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
        let Some(defaults) = item.get(from).and_then(Value::as_object) else { continue };
        for (name, amount) in defaults {
            if container.pointer(&format!("/resources/{to}/{name}")).is_none() && container["resources"].is_object() {
                container["resources"][to][name] = amount.clone();
                set.push(format!("{name} {word} for container {own}"));
            }
        }
    }
    set
}

/// Returns the violation of a maximum.
fn limit_violation(item: &Value, container: &Value) -> Option<String> {
    let most = item.get("max").and_then(Value::as_object)?;
    most.iter().find_map(|(name, most)| {
        let most = Quantity::parse(most.as_str()?)?;
        let limit = Quantity::parse(string_at(container, &format!("/resources/limits/{name}")))?;
        (limit > most).then(|| {
            let (most, limit) = (most.canonical(), limit.canonical());
            format!("maximum {name} usage per Container is {most}, but limit is {limit}")
        })
    })
}
