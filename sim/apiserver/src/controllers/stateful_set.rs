//! The StatefulSet controller: pods with stable names, created and deleted in order, each with its own claims.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::controller_revisions::{delete_old_revisions, ensure_current_revision, revision_hash, template_of_revision};
use super::owned_objects::{OwnedObject, claim_objects, has_ended, is_available, is_ready};
use super::writes::{
    MANAGER, create_object, delete_object, error_message, number, record_event, replace_status, set_count,
};
use crate::controllers::owned_objects::pod_from;
use crate::object::fields::{array_at, is_deleting, name, string_at};
use crate::object::key::{StoredKey, builtin_key};
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;

const CONTROLLER: &str = "statefulset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
/// Delay before the retry of a rejected create.
const CREATE_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// State of one reconciliation.
struct SetState<'a> {
    set: &'a Value,
    /// Revision of the pods before the update, and the revision that they should get.
    current: String,
    update: String,
}

impl SetState<'_> {
    fn start(&self) -> i64 {
        number(self.set, "/spec/ordinals/start")
    }

    fn replicas(&self) -> i64 {
        self.set.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
    }

    fn is_ordered(&self) -> bool {
        string_at(self.set, "/spec/podManagementPolicy") != "Parallel"
    }

    fn partition(&self) -> i64 {
        number(self.set, "/spec/updateStrategy/rollingUpdate/partition")
    }

    /// Returns the revision for a new pod.
    fn revision_for(&self, ordinal: i64) -> &str {
        let kept = self
            .set
            .pointer("/spec/updateStrategy/rollingUpdate/partition")
            .map_or_else(|| number(self.set, "/status/currentReplicas"), |_| self.partition());
        let is_rolling = string_at(self.set, "/spec/updateStrategy/type") == "RollingUpdate";
        let keeps_old = is_rolling && self.current != self.update && ordinal < self.start() + kept;
        if keeps_old { &self.current } else { &self.update }
    }
}

/// Returns the ordinal in the name of a pod.
fn ordinal_of(set: &Value, pod: &str) -> Option<i64> {
    pod.strip_prefix(name(set))?.strip_prefix('-')?.parse().ok()
}

fn revision_of(pod: &Value) -> &str {
    pod["metadata"]["labels"].get(REVISION_LABEL).and_then(Value::as_str).unwrap_or_default()
}

fn is_healthy(pod: &Value) -> bool {
    string_at(pod, "/status/phase") == "Running" && is_ready(pod) && !is_deleting(pod)
}

pub(crate) fn reconcile_stateful_set(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(set) = state.store.find_key(key).cloned() else { return };
    let mut labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    let hash = revision_hash(&set);
    labels["controller.kubernetes.io/hash"] = json!(hash);
    let Some(update) = ensure_current_revision(state, now, CONTROLLER, &set, &hash, labels) else { return };
    let recorded = string_at(&set, "/status/currentRevision");
    let current = if recorded.is_empty() { update.clone() } else { recorded.to_owned() };
    let observed = SetState { set: &set, current, update };
    if !is_deleting(&set) {
        sync_pods(state, now, key, &observed);
    }
    update_stateful_set_status(state, now, key, &observed);
}

fn pods_in_order(state: &mut ServerState, now: Timestamp, set: &Value) -> Vec<(i64, OwnedObject)> {
    let pods = claim_objects(state, now, CONTROLLER, set, ("", "pods"));
    let mut numbered: Vec<(i64, OwnedObject)> =
        pods.into_iter().filter_map(|pod| Some((ordinal_of(set, &pod.key.name)?, pod))).collect();
    numbered.sort_by_key(|(ordinal, _)| *ordinal);
    numbered
}

/// Creates missing pods, then deletes surplus ones, then outdated ones; one at a time unless the policy is `Parallel`.
fn sync_pods(state: &mut ServerState, now: Timestamp, key: &StoredKey, observed: &SetState<'_>) {
    let pods = pods_in_order(state, now, observed.set);
    let (first, end) = (observed.start(), observed.start() + observed.replicas());
    for ordinal in first..end {
        let existing = pods.iter().find(|(other, _)| *other == ordinal).map(|(_, pod)| pod);
        let is_settled = match existing {
            Some(pod) if has_ended(&pod.object) && !is_deleting(&pod.object) => {
                delete_object(state, now, CONTROLLER, &pod.key);
                false
            }
            Some(pod) => is_healthy(&pod.object),
            None => {
                create_pod(state, now, key, observed, ordinal);
                false
            }
        };
        if !is_settled && observed.is_ordered() {
            return;
        }
    }
    let mut surplus = pods.iter().filter(|(ordinal, _)| !(first..end).contains(ordinal)).rev().peekable();
    if surplus.peek().is_some() {
        for (_, pod) in surplus {
            if !is_deleting(&pod.object) {
                delete_pod(state, now, observed.set, pod);
            }
            if observed.is_ordered() {
                return;
            }
        }
        return;
    }
    delete_outdated(state, now, observed, &pods);
}

fn delete_outdated(state: &mut ServerState, now: Timestamp, observed: &SetState<'_>, pods: &[(i64, OwnedObject)]) {
    if string_at(observed.set, "/spec/updateStrategy/type") == "OnDelete" {
        return;
    }
    let first_updated = observed.start() + observed.partition();
    for (_, pod) in pods.iter().rev().filter(|(ordinal, _)| *ordinal >= first_updated) {
        if revision_of(&pod.object) != observed.update && !is_deleting(&pod.object) {
            return delete_pod(state, now, observed.set, pod);
        }
        if !is_healthy(&pod.object) {
            return;
        }
    }
}

fn delete_pod(state: &mut ServerState, now: Timestamp, set: &Value, pod: &OwnedObject) {
    delete_object(state, now, CONTROLLER, &pod.key);
    let message = format!("delete Pod {} in StatefulSet {} successful", pod.key.name, name(set));
    record_event(state, now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
}

fn create_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey, observed: &SetState<'_>, ordinal: i64) {
    let set = observed.set;
    let revision = observed.revision_for(ordinal).to_owned();
    let template =
        template_of_revision(&state.store, set, &revision).unwrap_or_else(|| set["spec"]["template"].clone());
    let namespace = string_at(set, "/metadata/namespace");
    create_claims(state, now, set, namespace, ordinal);
    let pod = build_pod(set, &template, &revision, ordinal);
    let pod_name = string_at(&pod, "/metadata/name").to_owned();
    let (event, message) = match create_object(state, now, CONTROLLER, ("", "pods"), namespace, pod) {
        Ok(_) => {
            (("Normal", "SuccessfulCreate"), format!("create Pod {pod_name} in StatefulSet {} successful", name(set)))
        }
        Err(error) => {
            let task = Task::Reconcile(Workload::StatefulSet, key.clone());
            state.schedule_after(now, CREATE_RETRY_DELAY, task);
            let error = error_message(&error);
            (
                ("Warning", "FailedCreate"),
                format!("create Pod {pod_name} in StatefulSet {} failed error: {error}", name(set)),
            )
        }
    };
    record_event(state, now, CONTROLLER, set, event, &message);
}

fn create_claims(state: &mut ServerState, now: Timestamp, set: &Value, namespace: &str, ordinal: i64) {
    for template in array_at(set, "/spec/volumeClaimTemplates") {
        let claim = format!("{}-{}-{ordinal}", name(template), name(set));
        let key = builtin_key("", "PersistentVolumeClaim", "persistentvolumeclaims", Some(namespace), &claim);
        if state.store.find_key(&key).is_some() {
            continue;
        }
        let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        let set_labels = set.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
        set_labels.into_iter().flatten().for_each(|(key, value)| labels[key] = value.clone());
        let object = json!({
            "metadata": {
                "name": claim, "labels": labels, "annotations": template.pointer("/metadata/annotations"),
            },
            "spec": template["spec"],
        });
        // A rejected claim is retried together with its pod.
        let _rejected = create_object(state, now, CONTROLLER, ("", "persistentvolumeclaims"), namespace, object);
    }
}

fn update_stateful_set_status(state: &mut ServerState, now: Timestamp, key: &StoredKey, observed: &SetState<'_>) {
    let pods: Vec<OwnedObject> = pods_in_order(state, now, observed.set).into_iter().map(|(_, pod)| pod).collect();
    let Some(live) = state.store.find_key(key).cloned() else { return };
    let min_ready_seconds = number(observed.set, "/spec/minReadySeconds");
    let count = |counts: &dyn Fn(&Value) -> bool| {
        let counted = pods.iter().filter(|pod| !has_ended(&pod.object) && counts(&pod.object)).count();
        i64::try_from(counted).unwrap_or(i64::MAX)
    };
    let is_kept = |pod: &Value| !is_deleting(pod);
    let ready = count(&is_healthy);
    let updated = count(&|pod| is_kept(pod) && revision_of(pod) == observed.update);
    let all = count(&|_| true);
    let complete = string_at(observed.set, "/spec/updateStrategy/type") == "RollingUpdate"
        && updated == all
        && ready == all
        && all == observed.replicas();
    let current = if complete { &observed.update } else { &observed.current };
    let mut updated_object = Value::clone(&live);
    let status = &mut updated_object["status"];
    status["replicas"] = json!(all);
    status["availableReplicas"] = json!(count(&|pod| is_healthy(pod) && is_available(pod, min_ready_seconds, now)));
    set_count(status, "readyReplicas", ready);
    set_count(status, "updatedReplicas", updated);
    set_count(status, "currentReplicas", count(&|pod| is_kept(pod) && revision_of(pod) == current));
    status["currentRevision"] = json!(current);
    status["updateRevision"] = json!(observed.update);
    status["collisionCount"] = json!(0);
    status["observedGeneration"] = live["metadata"]["generation"].clone();
    replace_status(state, now, (CONTROLLER, MANAGER), key, &updated_object);
    let in_use = [observed.current.clone(), observed.update.clone()];
    delete_old_revisions(state, now, CONTROLLER, observed.set, &in_use);
    if min_ready_seconds > 0 && ready > 0 {
        let has_waiting_pods = count(&|pod| is_healthy(pod) && !is_available(pod, min_ready_seconds, now)) > 0;
        if has_waiting_pods {
            let task = Task::Reconcile(Workload::StatefulSet, key.clone());
            state.schedule_after(now, SignedDuration::from_secs(min_ready_seconds), task);
        }
    }
}

/// Returns the pod of an ordinal, with its name, host name and claims.
fn build_pod(set: &Value, template: &Value, revision: &str, ordinal: i64) -> Value {
    let mut pod = pod_from(template, set);
    let pod_name = format!("{}-{ordinal}", name(set));
    pod["metadata"]["name"] = json!(pod_name);
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
    pod["metadata"]["labels"][REVISION_LABEL] = json!(revision);
    pod["spec"]["hostname"] = json!(pod_name);
    if let Some(service) = set.pointer("/spec/serviceName") {
        pod["spec"]["subdomain"] = service.clone();
    }
    let mut volumes: Vec<Value> = array_at(set, "/spec/volumeClaimTemplates")
        .iter()
        .map(|claim| {
            let claim_name = format!("{}-{pod_name}", name(claim));
            json!({"name": name(claim), "persistentVolumeClaim": {"claimName": claim_name}})
        })
        .collect();
    let others = array_at(&pod, "/spec/volumes")
        .iter()
        .filter(|volume| !volumes.iter().any(|claim| claim["name"] == volume["name"]));
    let others: Vec<Value> = others.cloned().collect();
    volumes.extend(others);
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
    pod
}
