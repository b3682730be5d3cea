//! The controller of ReplicaSets and of ReplicationControllers: keeps the desired number of pods.

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
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;

/// One of the kinds of this controller.
#[derive(Clone, Copy)]
struct ReplicaKind {
    /// Name of the controller, also in its events.
    controller: &'static str,
    workload: Workload,
    /// True if the status counts pods that are being deleted.
    counts_terminating: bool,
}

const REPLICA_SET: ReplicaKind =
    ReplicaKind { controller: "replicaset-controller", workload: Workload::ReplicaSet, counts_terminating: true };
const REPLICATION_CONTROLLER: ReplicaKind = ReplicaKind {
    controller: "replication-controller",
    workload: Workload::ReplicationController,
    counts_terminating: false,
};

/// Reconciliation of one object of these kinds.
#[derive(Clone, Copy)]
struct Reconciliation<'a> {
    kind: ReplicaKind,
    now: Timestamp,
    key: &'a StoredKey,
    set: &'a Value,
}

/// Maximum number of pods created or deleted in one reconciliation.
const BURST_PODS_MAX: i64 = 500;

pub(crate) fn reconcile_replica_set(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    reconcile_replicas(state, now, key, REPLICA_SET);
}

pub(crate) fn reconcile_replication_controller(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    reconcile_replicas(state, now, key, REPLICATION_CONTROLLER);
}

fn reconcile_replicas(state: &mut ServerState, now: Timestamp, key: &StoredKey, kind: ReplicaKind) {
    let Some(set) = state.store.find_key(key).cloned() else { return };
    let reconciliation = Reconciliation { kind, now, key, set: &set };
    let pods = reconciliation.claim_pods(state);
    let active: Vec<&OwnedObject> = pods.iter().filter(|pod| is_active(&pod.object)).collect();
    let missing = number(&set, "/spec/replicas") - i64::try_from(active.len()).unwrap_or(i64::MAX);
    let mut failure = None;
    if !is_deleting(&set) && missing > 0 {
        let added = reconciliation.add_pods(state, missing.min(BURST_PODS_MAX));
        failure = added.err().map(|message| ("FailedCreate", message));
    } else if !is_deleting(&set) && missing < 0 {
        reconciliation.remove_pods(state, &active, (-missing).min(BURST_PODS_MAX));
    }
    reconciliation.update_status(state, failure);
}

impl Reconciliation<'_> {
    fn claim_pods(&self, state: &mut ServerState) -> Vec<OwnedObject> {
        claim_objects(state, self.now, self.kind.controller, self.set, ("", "pods"))
    }

    fn record(&self, state: &mut ServerState, reason: (&str, &str), message: &str) {
        record_event(state, self.now, self.kind.controller, self.set, reason, message);
    }

    fn schedule_after(&self, state: &mut ServerState, delay: SignedDuration) {
        state.schedule_after(self.now, delay, Task::Reconcile(self.kind.workload, self.key.clone()));
    }

    fn add_pods(&self, state: &mut ServerState, count: i64) -> Result<(), String> {
        let namespace = string_at(self.set, "/metadata/namespace");
        for _ in 0..count {
            let pod = pod_from(&self.set["spec"]["template"], self.set);
            match create_object(state, self.now, self.kind.controller, ("", "pods"), namespace, pod) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    self.record(state, ("Normal", "SuccessfulCreate"), &message);
                }
                Err(error) => {
                    let error = error_message(&error);
                    self.record(state, ("Warning", "FailedCreate"), &format!("Error creating: {error}"));
                    // A rejected create may succeed later: a quota grows, a service account appears.
                    self.schedule_after(state, CREATE_RETRY_DELAY);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn remove_pods(&self, state: &mut ServerState, active: &[&OwnedObject], count: i64) {
        let mut pods = active.to_vec();
        pods.sort_by(|one, other| compare_deletion_order(&one.object, &other.object));
        for pod in pods.into_iter().take(usize::try_from(count).unwrap_or_default()) {
            delete_object(state, self.now, self.kind.controller, &pod.key);
            self.record(state, ("Normal", "SuccessfulDelete"), &format!("Deleted pod: {}", pod.key.name));
        }
    }

    /// Writes the status from the current pods.
    fn update_status(&self, state: &mut ServerState, failure: Option<(&str, String)>) {
        let Some(live) = state.store.find_key(self.key).cloned() else { return };
        let pods = self.claim_pods(state);
        let min_ready_seconds = number(self.set, "/spec/minReadySeconds");
        let count = |counts: &dyn Fn(&Value) -> bool| {
            i64::try_from(pods.iter().filter(|pod| counts(&pod.object)).count()).unwrap_or(i64::MAX)
        };
        let labels = self.set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
        let has_template_labels = |pod: &Value| {
            let pod_labels = &pod["metadata"]["labels"];
            labels.as_object().into_iter().flatten().all(|(key, value)| pod_labels.get(key) == Some(value))
        };
        let mut updated_object = Value::clone(&live);
        let status = &mut updated_object["status"];
        let ready = count(&|pod| is_active(pod) && is_ready(pod));
        let available = count(&|pod| is_active(pod) && is_available(pod, min_ready_seconds, self.now));
        status["replicas"] = json!(count(&is_active));
        set_count(status, "fullyLabeledReplicas", count(&|pod| is_active(pod) && has_template_labels(pod)));
        set_count(status, "readyReplicas", ready);
        set_count(status, "availableReplicas", available);
        if self.kind.counts_terminating {
            status["terminatingReplicas"] = json!(count(&|pod| is_deleting(pod) && !has_ended(pod)));
        }
        status["observedGeneration"] = live["metadata"]["generation"].clone();
        set_failure_condition(&mut updated_object, failure, &format_timestamp(self.now));
        replace_status(state, self.now, (self.kind.controller, MANAGER), self.key, &updated_object);
        if min_ready_seconds > 0 && ready > available {
            self.schedule_after(state, SignedDuration::from_secs(min_ready_seconds));
        }
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
