//! The ReplicaSet controller: keeps the desired number of pods.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::owned_objects::{
    OwnedObject, claim_objects, compare_deletion_order, has_ended, is_active, is_available, is_ready, pod_from,
};
use super::writes::{
    MANAGER, condition, create_object, delete_object, error_message, number, record_event, replace_status, set_count,
};
use crate::object::fields::{array_at, format_timestamp, is_deleting, name, string_at};
use crate::object::key::StoredKey;
use crate::object::key::builtin_key;
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;

const CONTROLLER: &str = "replicaset-controller";
/// Maximum number of pods created or deleted in one reconciliation.
const BURST_PODS_MAX: i64 = 500;

pub(crate) fn reconcile_replica_set(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(set) = state.store.find_key(key).cloned() else { return };
    let pods = claim_objects(state, now, CONTROLLER, &set, ("", "pods"));
    let active: Vec<&OwnedObject> = pods.iter().filter(|pod| is_active(&pod.object)).collect();
    let missing = number(&set, "/spec/replicas") - i64::try_from(active.len()).unwrap_or(i64::MAX);
    let mut failure = None;
    if !is_deleting(&set) && missing > 0 {
        failure =
            add_pods(state, now, &set, missing.min(BURST_PODS_MAX)).err().map(|message| ("FailedCreate", message));
    } else if !is_deleting(&set) && missing < 0 {
        remove_pods(state, now, &set, &active, (-missing).min(BURST_PODS_MAX));
    }
    update_replica_set_status(state, now, key, &set, failure);
}

fn add_pods(state: &mut ServerState, now: Timestamp, set: &Value, count: i64) -> Result<(), String> {
    let namespace = string_at(set, "/metadata/namespace");
    for _ in 0..count {
        let pod = pod_from(&set["spec"]["template"], set);
        match create_object(state, now, CONTROLLER, ("", "pods"), namespace, pod) {
            Ok(pod) => {
                let message = format!("Created pod: {}", name(&pod));
                record_event(state, now, CONTROLLER, set, ("Normal", "SuccessfulCreate"), &message);
            }
            Err(error) => {
                let error = error_message(&error);
                let message = format!("Error creating: {error}");
                record_event(state, now, CONTROLLER, set, ("Warning", "FailedCreate"), &message);
                // A rejected create may succeed later: a quota grows, a service account appears.
                let key = builtin_key("apps", "ReplicaSet", "replicasets", Some(namespace), name(set));
                state.schedule_after(now, CREATE_RETRY_DELAY, Task::Reconcile(Workload::ReplicaSet, key));
                return Err(error);
            }
        }
    }
    Ok(())
}

fn remove_pods(state: &mut ServerState, now: Timestamp, set: &Value, active: &[&OwnedObject], count: i64) {
    let mut pods = active.to_vec();
    pods.sort_by(|one, other| compare_deletion_order(&one.object, &other.object));
    for pod in pods.into_iter().take(usize::try_from(count).unwrap_or_default()) {
        delete_object(state, now, CONTROLLER, &pod.key);
        let message = format!("Deleted pod: {}", pod.key.name);
        record_event(state, now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
    }
}

/// Writes the status from the current pods.
fn update_replica_set_status(
    state: &mut ServerState,
    now: Timestamp,
    key: &StoredKey,
    set: &Value,
    failure: Option<(&str, String)>,
) {
    let Some(live) = state.store.find_key(key).cloned() else { return };
    let pods = claim_objects(state, now, CONTROLLER, set, ("", "pods"));
    let min_ready_seconds = number(set, "/spec/minReadySeconds");
    let count = |counts: &dyn Fn(&Value) -> bool| {
        i64::try_from(pods.iter().filter(|pod| counts(&pod.object)).count()).unwrap_or(i64::MAX)
    };
    let labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    let has_template_labels = |pod: &Value| {
        let pod_labels = &pod["metadata"]["labels"];
        labels.as_object().into_iter().flatten().all(|(key, value)| pod_labels.get(key) == Some(value))
    };
    let mut updated_object = Value::clone(&live);
    let status = &mut updated_object["status"];
    let ready = count(&|pod| is_active(pod) && is_ready(pod));
    let available = count(&|pod| is_active(pod) && is_available(pod, min_ready_seconds, now));
    status["replicas"] = json!(count(&is_active));
    set_count(status, "fullyLabeledReplicas", count(&|pod| is_active(pod) && has_template_labels(pod)));
    set_count(status, "readyReplicas", ready);
    set_count(status, "availableReplicas", available);
    status["terminatingReplicas"] = json!(count(&|pod| is_deleting(pod) && !has_ended(pod)));
    status["observedGeneration"] = live["metadata"]["generation"].clone();
    set_failure_condition(&mut updated_object, failure, &format_timestamp(now));
    replace_status(state, now, (CONTROLLER, MANAGER), key, &updated_object);
    if min_ready_seconds > 0 && ready > available {
        let task = Task::Reconcile(Workload::ReplicaSet, key.clone());
        state.schedule_after(now, SignedDuration::from_secs(min_ready_seconds), task);
    }
}

/// Delay before the retry of a rejected create.
const CREATE_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Sets or removes the `ReplicaFailure` condition.
fn set_failure_condition(set: &mut Value, failure: Option<(&str, String)>, timestamp: &str) {
    let known = condition(set, "ReplicaFailure").cloned();
    let others = array_at(set, "/status/conditions").iter().filter(|condition| condition["type"] != "ReplicaFailure");
    let mut conditions: Vec<Value> = others.cloned().collect();
    match (failure, known) {
        (None, None) => return,
        (None, Some(_)) => {}
        (Some(_), Some(known)) => conditions.push(known),
        (Some((reason, message)), None) => conditions.push(json!({
            "type": "ReplicaFailure", "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": timestamp,
        })),
    }
    set["status"]["conditions"] = json!(conditions);
    if let (true, Some(status)) = (conditions.is_empty(), set["status"].as_object_mut()) {
        status.remove("conditions");
    }
}
