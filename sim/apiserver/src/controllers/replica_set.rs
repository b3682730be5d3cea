//! Replica sets: as many pods as are wanted, no more and no less.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::owned_objects::{Owned, by_worth, has_ended, is_active, is_available, is_ready};
use super::writes::{MANAGER, condition, number, set_count, words};
use crate::object::fields::{is_deleting, list, name, stamp, text};
use crate::object::key::StoredKey;
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};

const CONTROLLER: &str = "replicaset-controller";
/// How many pods are made or deleted at one look.
const BURST_PODS_MAX: i64 = 500;

impl ApiServer {
    pub(super) fn reconcile_replica_set(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(set) = self.stored(key).cloned() else { return };
        let pods = self.claim(now, CONTROLLER, &set, ("", "pods"));
        let active: Vec<&Owned> = pods.iter().filter(|pod| is_active(&pod.object)).collect();
        let missing = number(&set, "/spec/replicas") - i64::try_from(active.len()).unwrap_or(i64::MAX);
        let mut failure = None;
        if !is_deleting(&set) && missing > 0 {
            failure = self.add_pods(now, &set, missing.min(BURST_PODS_MAX)).err().map(|why| ("FailedCreate", why));
        } else if !is_deleting(&set) && missing < 0 {
            self.remove_pods(now, &set, &active, (-missing).min(BURST_PODS_MAX));
        }
        self.tell_replicas(now, key, &set, failure);
    }

    fn add_pods(&mut self, now: Timestamp, set: &Value, count: i64) -> Result<(), String> {
        let namespace = text(set, "/metadata/namespace");
        for _ in 0..count {
            let pod = Self::pod_from(&set["spec"]["template"], set);
            match self.make(now, CONTROLLER, ("", "pods"), namespace, pod) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    self.tell(now, CONTROLLER, set, ("Normal", "SuccessfulCreate"), &message);
                }
                Err(error) => {
                    let why = words(&error);
                    let message = format!("Error creating: {why}");
                    self.tell(now, CONTROLLER, set, ("Warning", "FailedCreate"), &message);
                    // What was refused may be allowed later: a quota grows, an account appears.
                    let key = super::writes::key_of("apps", "ReplicaSet", "replicasets", Some(namespace), name(set));
                    self.schedule_after(now, CREATE_AGAIN, Task::Reconcile(Workload::ReplicaSet, key));
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    fn remove_pods(&mut self, now: Timestamp, set: &Value, active: &[&Owned], count: i64) {
        let mut pods = active.to_vec();
        pods.sort_by(|one, other| by_worth(&one.object, &other.object));
        for pod in pods.into_iter().take(usize::try_from(count).unwrap_or_default()) {
            self.discard(now, CONTROLLER, &pod.key);
            let message = format!("Deleted pod: {}", pod.key.name);
            self.tell(now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
        }
    }

    /// The status, from the pods as they are now.
    fn tell_replicas(&mut self, now: Timestamp, key: &StoredKey, set: &Value, failure: Option<(&str, String)>) {
        let Some(live) = self.stored(key).cloned() else { return };
        let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
        let patience = number(set, "/spec/minReadySeconds");
        let count = |counts: &dyn Fn(&Value) -> bool| {
            i64::try_from(pods.iter().filter(|pod| counts(&pod.object)).count()).unwrap_or(i64::MAX)
        };
        let labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
        let labelled = |pod: &Value| {
            let own = &pod["metadata"]["labels"];
            labels.as_object().into_iter().flatten().all(|(key, value)| own.get(key) == Some(value))
        };
        let mut told = Value::clone(&live);
        let status = &mut told["status"];
        let ready = count(&|pod| is_active(pod) && is_ready(pod));
        let available = count(&|pod| is_active(pod) && is_available(pod, patience, now));
        status["replicas"] = json!(count(&is_active));
        set_count(status, "fullyLabeledReplicas", count(&|pod| is_active(pod) && labelled(pod)));
        set_count(status, "readyReplicas", ready);
        set_count(status, "availableReplicas", available);
        status["terminatingReplicas"] = json!(count(&|pod| is_deleting(pod) && !has_ended(pod)));
        status["observedGeneration"] = live["metadata"]["generation"].clone();
        tell_failure(&mut told, failure, &stamp(now));
        self.replace_status(now, (CONTROLLER, MANAGER), key, &told);
        if patience > 0 && ready > available {
            let task = Task::Reconcile(Workload::ReplicaSet, key.clone());
            self.schedule_after(now, SignedDuration::from_secs(patience), task);
        }
    }
}

/// How long until pods that were refused are made again.
const CREATE_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// The condition that pods cannot be made.
fn tell_failure(set: &mut Value, failure: Option<(&str, String)>, at: &str) {
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
