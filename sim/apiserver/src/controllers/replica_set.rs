//! The ReplicaSet controller: keeps the desired number of pods.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::owned_objects::{OwnedObject, compare_deletion_order, has_ended, is_active, is_available, is_ready};
use super::writes::{MANAGER, condition, error_message, number, set_count};
use crate::object::fields::{is_deleting, list, name, stamp, text};
use crate::object::key::StoredKey;
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};

const CONTROLLER: &str = "replicaset-controller";
/// Maximum number of pods created or deleted in one reconciliation.
const BURST_PODS_MAX: i64 = 500;

impl ApiServer {
    pub(super) fn reconcile_replica_set(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(set) = self.stored(key).cloned() else { return };
        let pods = self.claim(now, CONTROLLER, &set, ("", "pods"));
        let active: Vec<&OwnedObject> = pods.iter().filter(|pod| is_active(&pod.object)).collect();
        let missing = number(&set, "/spec/replicas") - i64::try_from(active.len()).unwrap_or(i64::MAX);
        let mut failure = None;
        if !is_deleting(&set) && missing > 0 {
            failure =
                self.add_pods(now, &set, missing.min(BURST_PODS_MAX)).err().map(|message| ("FailedCreate", message));
        } else if !is_deleting(&set) && missing < 0 {
            self.remove_pods(now, &set, &active, (-missing).min(BURST_PODS_MAX));
        }
        self.update_replica_set_status(now, key, &set, failure);
    }

    fn add_pods(&mut self, now: Timestamp, set: &Value, count: i64) -> Result<(), String> {
        let namespace = text(set, "/metadata/namespace");
        for _ in 0..count {
            let pod = Self::pod_from(&set["spec"]["template"], set);
            match self.create_object(now, CONTROLLER, ("", "pods"), namespace, pod) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    self.record_event(now, CONTROLLER, set, ("Normal", "SuccessfulCreate"), &message);
                }
                Err(error) => {
                    let error = error_message(&error);
                    let message = format!("Error creating: {error}");
                    self.record_event(now, CONTROLLER, set, ("Warning", "FailedCreate"), &message);
                    // A rejected create may succeed later: a quota grows, a service account appears.
                    let key =
                        super::writes::builtin_key("apps", "ReplicaSet", "replicasets", Some(namespace), name(set));
                    self.schedule_after(now, CREATE_RETRY_DELAY, Task::Reconcile(Workload::ReplicaSet, key));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn remove_pods(&mut self, now: Timestamp, set: &Value, active: &[&OwnedObject], count: i64) {
        let mut pods = active.to_vec();
        pods.sort_by(|one, other| compare_deletion_order(&one.object, &other.object));
        for pod in pods.into_iter().take(usize::try_from(count).unwrap_or_default()) {
            self.delete_object(now, CONTROLLER, &pod.key);
            let message = format!("Deleted pod: {}", pod.key.name);
            self.record_event(now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
        }
    }

    /// Writes the status from the current pods.
    fn update_replica_set_status(
        &mut self,
        now: Timestamp,
        key: &StoredKey,
        set: &Value,
        failure: Option<(&str, String)>,
    ) {
        let Some(live) = self.stored(key).cloned() else { return };
        let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
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
        set_failure_condition(&mut updated_object, failure, &stamp(now));
        self.replace_status(now, (CONTROLLER, MANAGER), key, &updated_object);
        if min_ready_seconds > 0 && ready > available {
            let task = Task::Reconcile(Workload::ReplicaSet, key.clone());
            self.schedule_after(now, SignedDuration::from_secs(min_ready_seconds), task);
        }
    }
}

/// Delay before the retry of a rejected create.
const CREATE_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Sets or removes the `ReplicaFailure` condition.
fn set_failure_condition(set: &mut Value, failure: Option<(&str, String)>, at: &str) {
    let known = condition(set, "ReplicaFailure").cloned();
    let others = list(set, "/status/conditions").iter().filter(|condition| condition["type"] != "ReplicaFailure");
    let mut conditions: Vec<Value> = others.cloned().collect();
    match (failure, known) {
        (None, None) => return,
        (None, Some(_)) => {}
        (Some(_), Some(known)) => conditions.push(known),
        (Some((reason, message)), None) => conditions.push(json!({
            "type": "ReplicaFailure", "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": at,
        })),
    }
    set["status"]["conditions"] = json!(conditions);
    if let (true, Some(status)) = (conditions.is_empty(), set["status"].as_object_mut()) {
        status.remove("conditions");
    }
}
