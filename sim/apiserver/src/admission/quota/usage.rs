//! Amounts of each limited resource that one object uses.

use serde_json::Value;
use sindri_cel::Quantity;

use super::amounts::{Usage, whole};
use super::pods;
use crate::object::fields::{array_at, string_at, value_at};

/// Kinds that have a name of their own in quotas, beside `count/…`.
const COUNTED: [&str; 6] =
    ["configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"];

/// Returns the amounts that an object uses.
pub(super) fn usage_of(group: &str, plural: &str, object: &Value) -> Usage {
    let mut usage = Usage::new();
    let suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
    usage.insert(format!("count/{plural}{suffix}"), whole(1));
    if !group.is_empty() {
        return usage;
    }
    if COUNTED.contains(&plural) {
        usage.insert(plural.to_owned(), whole(1));
    }
    match plural {
        "pods" => usage.extend(pods::usage_of_pod(object)),
        "services" => usage.extend(usage_of_service(object)),
        "persistentvolumeclaims" => usage.extend(usage_of_claim(object)),
        _ => {}
    }
    usage
}

fn usage_of_service(service: &Value) -> Usage {
    let ports = array_at(service, "/spec/ports");
    let with_node_port = ports.iter().filter(|port| port.get("nodePort").is_some()).count();
    let mut usage = Usage::new();
    match string_at(service, "/spec/type") {
        "NodePort" => drop(usage.insert("services.nodeports".to_owned(), whole(ports.len()))),
        "LoadBalancer" => {
            let allocates = value_at(service, "/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
            let count = if allocates { ports.len() } else { with_node_port };
            usage.insert("services.nodeports".to_owned(), whole(count));
            usage.insert("services.loadbalancers".to_owned(), whole(1));
        }
        _ => {}
    }
    usage
}

fn usage_of_claim(claim: &Value) -> Usage {
    let mut usage = Usage::new();
    let class = string_at(claim, "/spec/storageClassName");
    let prefix = format!("{class}.storageclass.storage.k8s.io");
    if !class.is_empty() {
        usage.insert(format!("{prefix}/persistentvolumeclaims"), whole(1));
    }
    if let Some(size) = Quantity::parse(string_at(claim, "/spec/resources/requests/storage")) {
        usage.insert("requests.storage".to_owned(), size);
        if !class.is_empty() {
            usage.insert(format!("{prefix}/requests.storage"), size);
        }
    }
    usage
}
