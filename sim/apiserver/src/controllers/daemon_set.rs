//! The DaemonSet controller: one pod on each eligible node.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::controller_revisions::{delete_old_revisions, ensure_current_revision};
use super::owned_objects::{OwnedObject, claim_objects, has_ended, is_available, is_ready};
use super::scheduler::{list_nodes, matches_node_affinity, untolerated_taint};
use super::template_hash::template_hash;
use super::writes::{
    MANAGER, create_object, delete_object, error_message, number, record_event, replace_status, set_count,
};
use crate::controllers::owned_objects::pod_from;
use crate::object::fields::{array_at, is_deleting, name, string_at};
use crate::object::key::StoredKey;
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;

const CONTROLLER: &str = "daemonset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
/// Taints that every pod of a DaemonSet tolerates.
const DEFAULT_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Delay before the retry of a rejected create.
const CREATE_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// Returns the node that a pod runs on or is bound to by its affinity.
fn node_of(pod: &Value) -> String {
    let assigned = string_at(pod, "/spec/nodeName");
    if !assigned.is_empty() {
        return assigned.to_owned();
    }
    let pointer = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    string_at(pod, pointer).to_owned()
}

pub(crate) fn reconcile_daemon_set(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(set) = state.store.find_key(key).cloned() else { return };
    let hash = template_hash(&set["spec"]["template"], None);
    let mut labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    labels[REVISION_LABEL] = json!(hash);
    let Some(revision) = ensure_current_revision(state, now, CONTROLLER, &set, &hash, labels) else { return };
    let nodes: Vec<Value> = list_nodes(&state.store).filter(|node| is_eligible(&set, node)).cloned().collect();
    let nodes: Vec<String> = nodes.iter().map(|node| name(node).to_owned()).collect();
    if !is_deleting(&set) {
        sync_daemon_pods(state, now, key, &set, &hash, &nodes);
        delete_outdated_daemon_pods(state, now, &set, &hash, &nodes);
    }
    update_daemon_set_status(state, now, key, &set, &hash, &nodes);
    delete_old_revisions(state, now, CONTROLLER, &set, &[revision]);
}

/// Creates a pod for each eligible node without one, and deletes pods that ended or are on other nodes.
fn sync_daemon_pods(
    state: &mut ServerState,
    now: Timestamp,
    key: &StoredKey,
    set: &Value,
    hash: &str,
    nodes: &[String],
) {
    let pods = claim_objects(state, now, CONTROLLER, set, ("", "pods"));
    for pod in &pods {
        let is_surplus = !nodes.contains(&node_of(&pod.object)) || has_ended(&pod.object);
        if is_surplus && !is_deleting(&pod.object) {
            delete_object(state, now, CONTROLLER, &pod.key);
        }
    }
    for node in nodes {
        let on_node: Vec<&OwnedObject> = pods.iter().filter(|pod| node_of(&pod.object) == *node).collect();
        if !on_node.is_empty() {
            continue;
        }
        let pod = build_daemon_pod(set, hash, node);
        match create_object(state, now, CONTROLLER, ("", "pods"), string_at(set, "/metadata/namespace"), pod) {
            Ok(pod) => {
                let message = format!("Created pod: {}", name(&pod));
                record_event(state, now, CONTROLLER, set, ("Normal", "SuccessfulCreate"), &message);
            }
            Err(error) => {
                let message = format!("Error creating: {}", error_message(&error));
                record_event(state, now, CONTROLLER, set, ("Warning", "FailedCreate"), &message);
                let task = Task::Reconcile(Workload::DaemonSet, key.clone());
                return state.schedule_after(now, CREATE_RETRY_DELAY, task);
            }
        }
    }
}

/// Deletes pods of an older template, as many as may be unavailable.
fn delete_outdated_daemon_pods(state: &mut ServerState, now: Timestamp, set: &Value, hash: &str, nodes: &[String]) {
    if string_at(set, "/spec/updateStrategy/type") == "OnDelete" {
        return;
    }
    let pods = claim_objects(state, now, CONTROLLER, set, ("", "pods"));
    let unavailable = nodes.iter().filter(|node| {
        !pods.iter().any(|pod| node_of(&pod.object) == **node && is_ready(&pod.object) && !is_deleting(&pod.object))
    });
    let mut allowed = max_unavailable(set, nodes.len()).saturating_sub(unavailable.count());
    for pod in pods.iter().filter(|pod| !is_deleting(&pod.object) && !has_revision(&pod.object, hash)) {
        // An unavailable pod can be deleted at once.
        if is_ready(&pod.object) {
            if allowed == 0 {
                continue;
            }
            allowed -= 1;
        }
        delete_object(state, now, CONTROLLER, &pod.key);
        let message = format!("Deleted pod: {}", pod.key.name);
        record_event(state, now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
    }
}

fn update_daemon_set_status(
    state: &mut ServerState,
    now: Timestamp,
    key: &StoredKey,
    set: &Value,
    hash: &str,
    nodes: &[String],
) {
    let pods = claim_objects(state, now, CONTROLLER, set, ("", "pods"));
    let Some(live) = state.store.find_key(key).cloned() else { return };
    let min_ready_seconds = number(set, "/spec/minReadySeconds");
    let count_nodes = |counts: &dyn Fn(&Value) -> bool| {
        let has_counted_pod = |node: &&String| {
            pods.iter().any(|pod| node_of(&pod.object) == **node && !is_deleting(&pod.object) && counts(&pod.object))
        };
        i64::try_from(nodes.iter().filter(has_counted_pod).count()).unwrap_or(i64::MAX)
    };
    let desired = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    let misplaced = pods.iter().filter(|pod| !nodes.contains(&node_of(&pod.object))).count();
    let available = count_nodes(&|pod| is_available(pod, min_ready_seconds, now));
    let ready = count_nodes(&is_ready);
    let mut updated_object = Value::clone(&live);
    let status = &mut updated_object["status"];
    status["desiredNumberScheduled"] = json!(desired);
    status["currentNumberScheduled"] = json!(count_nodes(&|_| true));
    status["numberMisscheduled"] = json!(misplaced);
    status["numberReady"] = json!(ready);
    set_count(status, "updatedNumberScheduled", count_nodes(&|pod| has_revision(pod, hash)));
    set_count(status, "numberAvailable", available);
    set_count(status, "numberUnavailable", desired - available);
    status["observedGeneration"] = live["metadata"]["generation"].clone();
    replace_status(state, now, (CONTROLLER, MANAGER), key, &updated_object);
    if min_ready_seconds > 0 && ready > available {
        let task = Task::Reconcile(Workload::DaemonSet, key.clone());
        state.schedule_after(now, SignedDuration::from_secs(min_ready_seconds), task);
    }
}

fn has_revision(pod: &Value, hash: &str) -> bool {
    pod["metadata"]["labels"].get(REVISION_LABEL).is_some_and(|label| label == hash)
}

/// Returns the number of nodes that may be without an available pod.
fn max_unavailable(set: &Value, nodes: usize) -> usize {
    let value = set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let percent = value.and_then(Value::as_str).and_then(|text| text.strip_suffix('%'));
    let most = match percent {
        Some(percent) => (nodes * percent.parse::<usize>().unwrap_or_default()).div_ceil(100),
        None => value.and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok()).unwrap_or(1),
    };
    most.max(1)
}

/// True if the set should have a pod on a node.
fn is_eligible(set: &Value, node: &Value) -> bool {
    let pod = json!({"spec": add_tolerations(&set["spec"]["template"]["spec"])});
    matches_node_affinity(&pod, node) && untolerated_taint(&pod, node, &["NoSchedule", "NoExecute"]).is_none()
}

/// Adds the default tolerations of a DaemonSet's pods to a pod spec.
fn add_tolerations(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut tolerations = array_at(&spec, "/tolerations").to_vec();
    for (key, effect) in DEFAULT_TOLERATIONS {
        let exists = tolerations.iter().any(|known| known["key"] == key && known["effect"] == effect);
        if !exists {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
        }
    }
    spec["tolerations"] = json!(tolerations);
    spec
}

/// Returns the pod for one node.
fn build_daemon_pod(set: &Value, hash: &str, node: &str) -> Value {
    let mut pod = pod_from(&set["spec"]["template"], set);
    pod["metadata"]["labels"][REVISION_LABEL] = json!(hash);
    let generation = number(set, "/metadata/generation").to_string();
    pod["metadata"]["labels"]["pod-template-generation"] = json!(generation);
    pod["spec"] = add_tolerations(&pod["spec"]);
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    let rule = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = pod.pointer_mut(&format!("/spec/affinity/nodeAffinity/{rule}/nodeSelectorTerms"));
    match terms.and_then(Value::as_array_mut) {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = json!([field])),
        None => pod["spec"]["affinity"]["nodeAffinity"][rule] = required,
    }
    pod
}
