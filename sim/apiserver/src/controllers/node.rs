//! Nodes of the simulated cluster.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::format_timestamp;
use crate::object::key::builtin_key;
use crate::state::server_state::ServerState;
use crate::storage::journal::Attribution;
use crate::storage::journal::Verb;
use crate::verbs::create_internal::{ControllerIdentity, create_for_controller};
use crate::writes::tracked::write_tracked;

/// Creates a node that is ready.
pub(crate) fn add_node(state: &mut ServerState, now: Timestamp, node: &str, index: usize) {
    let maker = ControllerIdentity { controller: "kubelet", manager: "kubelet" };
    let labels = json!({
        "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node, "kubernetes.io/os": "linux",
    });
    let (high, low) = (index / 256, index % 256);
    let pod_range = format!("10.{}.{low}.0/24", 244 + high);
    let object = json!({
        "metadata": {"name": node, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"podCIDR": pod_range, "podCIDRs": [pod_range]},
    });
    if create_for_controller(state, now, maker, ("", "nodes"), None, object).is_err() {
        return;
    }
    let key = builtin_key("", "Node", "nodes", None, node);
    let Some(live) = state.store.find_key(&key).cloned() else { return };
    let mut ready = Value::clone(&live);
    if let Some(spec) = ready["spec"].as_object_mut() {
        spec.remove("taints");
    }
    let capacity = json!({"cpu": "8", "memory": "32Gi", "pods": PODS_MAX.to_string(), "ephemeral-storage": "100Gi"});
    ready["status"] = json!({
        "capacity": capacity, "allocatable": capacity,
        "addresses": [
            {"type": "InternalIP", "address": format!("10.0.{}.{}", (index + 1) / 256, (index + 1) % 256)},
            {"type": "Hostname", "address": node},
        ],
        "conditions": node_conditions(&format_timestamp(now)),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.35.4",
            "kubeProxyVersion": "", "containerRuntimeVersion": "simulated://1.0", "osImage": "simulated",
            "kernelVersion": "simulated", "bootID": "", "machineID": "", "systemUUID": "",
        },
    });
    let mut attribution = Attribution::controller("kubelet", Verb::Update);
    attribution.subresource = "status";
    write_tracked(state, now, &attribution, "kubelet", &key, &ready);
}

/// Maximum number of pods on a node.
pub(super) const PODS_MAX: usize = 110;

fn node_conditions(timestamp: &str) -> Value {
    let condition = |condition_type: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": condition_type, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": timestamp, "lastTransitionTime": timestamp,
        })
    };
    json!([
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ])
}
