//! Stateful sets: pods with names that stay, made and deleted in order, each with claims of its own.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::controller_revisions::revision_hash;
use super::owned_objects::{Owned, has_ended, is_available, is_ready};
use super::writes::{MANAGER, key_of, number, set_count, words};
use crate::object::fields::{is_deleting, list, name, text};
use crate::object::key::StoredKey;
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};

const CONTROLLER: &str = "statefulset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
/// How long until something that was refused is made again.
const CREATE_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// A set at one look.
struct Look<'a> {
    set: &'a Value,
    /// The revision that most pods had until now, and the one that they should have.
    current: String,
    update: String,
}

impl Look<'_> {
    fn start(&self) -> i64 {
        number(self.set, "/spec/ordinals/start")
    }

    fn replicas(&self) -> i64 {
        self.set.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
    }

    fn in_order(&self) -> bool {
        text(self.set, "/spec/podManagementPolicy") != "Parallel"
    }

    fn partition(&self) -> i64 {
        number(self.set, "/spec/updateStrategy/rollingUpdate/partition")
    }

    /// The revision of a pod that is made now.
    fn revision_for(&self, ordinal: i64) -> &str {
        let kept = self
            .set
            .pointer("/spec/updateStrategy/rollingUpdate/partition")
            .map_or_else(|| number(self.set, "/status/currentReplicas"), |_| self.partition());
        let rolls = text(self.set, "/spec/updateStrategy/type") == "RollingUpdate";
        let old = rolls && self.current != self.update && ordinal < self.start() + kept;
        if old { &self.current } else { &self.update }
    }
}

/// The number in the name of a pod.
fn ordinal_of(set: &Value, pod: &str) -> Option<i64> {
    pod.strip_prefix(name(set))?.strip_prefix('-')?.parse().ok()
}

fn revision_of(pod: &Value) -> &str {
    pod["metadata"]["labels"].get(REVISION_LABEL).and_then(Value::as_str).unwrap_or_default()
}

fn is_healthy(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running" && is_ready(pod) && !is_deleting(pod)
}

impl ApiServer {
    pub(super) fn reconcile_stateful_set(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(set) = self.stored(key).cloned() else { return };
        let mut labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        let hash = revision_hash(&set);
        labels["controller.kubernetes.io/hash"] = json!(hash);
        let Some(update) = self.current_revision(now, CONTROLLER, &set, &hash, labels) else { return };
        let known = text(&set, "/status/currentRevision");
        let current = if known.is_empty() { update.clone() } else { known.to_owned() };
        let look = Look { set: &set, current, update };
        if !is_deleting(&set) {
            self.order_pods(now, key, &look);
        }
        self.tell_stateful_set(now, key, &look);
    }

    fn pods_in_order(&mut self, now: Timestamp, set: &Value) -> Vec<(i64, Owned)> {
        let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
        let mut numbered: Vec<(i64, Owned)> =
            pods.into_iter().filter_map(|pod| Some((ordinal_of(set, &pod.key.name)?, pod))).collect();
        numbered.sort_by_key(|(ordinal, _)| *ordinal);
        numbered
    }

    /// Makes what is missing, then deletes what is too much, then what is old; one at a time unless told otherwise.
    fn order_pods(&mut self, now: Timestamp, key: &StoredKey, look: &Look<'_>) {
        let pods = self.pods_in_order(now, look.set);
        let (first, end) = (look.start(), look.start() + look.replicas());
        for ordinal in first..end {
            let found = pods.iter().find(|(found, _)| *found == ordinal).map(|(_, pod)| pod);
            let settled = match found {
                Some(pod) if has_ended(&pod.object) && !is_deleting(&pod.object) => {
                    self.discard(now, CONTROLLER, &pod.key);
                    false
                }
                Some(pod) => is_healthy(&pod.object),
                None => {
                    self.make_ordinal(now, key, look, ordinal);
                    false
                }
            };
            if !settled && look.in_order() {
                return;
            }
        }
        let mut condemned = pods.iter().filter(|(ordinal, _)| !(first..end).contains(ordinal)).rev().peekable();
        if condemned.peek().is_some() {
            for (_, pod) in condemned {
                if !is_deleting(&pod.object) {
                    self.discard_ordinal(now, look.set, pod);
                }
                if look.in_order() {
                    return;
                }
            }
            return;
        }
        self.replace_old(now, look, &pods);
    }

    fn replace_old(&mut self, now: Timestamp, look: &Look<'_>, pods: &[(i64, Owned)]) {
        if text(look.set, "/spec/updateStrategy/type") == "OnDelete" {
            return;
        }
        let kept = look.start() + look.partition();
        for (_, pod) in pods.iter().rev().filter(|(ordinal, _)| *ordinal >= kept) {
            if revision_of(&pod.object) != look.update && !is_deleting(&pod.object) {
                return self.discard_ordinal(now, look.set, pod);
            }
            if !is_healthy(&pod.object) {
                return;
            }
        }
    }

    fn discard_ordinal(&mut self, now: Timestamp, set: &Value, pod: &Owned) {
        self.discard(now, CONTROLLER, &pod.key);
        let message = format!("delete Pod {} in StatefulSet {} successful", pod.key.name, name(set));
        self.tell(now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
    }

    fn make_ordinal(&mut self, now: Timestamp, key: &StoredKey, look: &Look<'_>, ordinal: i64) {
        let set = look.set;
        let revision = look.revision_for(ordinal).to_owned();
        let template = self.template_in(set, &revision).unwrap_or_else(|| set["spec"]["template"].clone());
        let namespace = text(set, "/metadata/namespace");
        self.make_claims(now, set, namespace, ordinal);
        let pod = ordinal_pod(set, &template, &revision, ordinal);
        let own = text(&pod, "/metadata/name").to_owned();
        let (kind, message) = match self.make(now, CONTROLLER, ("", "pods"), namespace, pod) {
            Ok(_) => {
                (("Normal", "SuccessfulCreate"), format!("create Pod {own} in StatefulSet {} successful", name(set)))
            }
            Err(error) => {
                let task = Task::Reconcile(Workload::StatefulSet, key.clone());
                self.schedule_after(now, CREATE_AGAIN, task);
                let why = words(&error);
                (
                    ("Warning", "FailedCreate"),
                    format!("create Pod {own} in StatefulSet {} failed error: {why}", name(set)),
                )
            }
        };
        self.tell(now, CONTROLLER, set, kind, &message);
    }

    fn make_claims(&mut self, now: Timestamp, set: &Value, namespace: &str, ordinal: i64) {
        for template in list(set, "/spec/volumeClaimTemplates") {
            let claim = format!("{}-{}-{ordinal}", name(template), name(set));
            let key = key_of("", "PersistentVolumeClaim", "persistentvolumeclaims", Some(namespace), &claim);
            if self.stored(&key).is_some() {
                continue;
            }
            let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
            let own = set.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
            own.into_iter().flatten().for_each(|(key, value)| labels[key] = value.clone());
            let object = json!({
                "metadata": {
                    "name": claim, "labels": labels, "annotations": template.pointer("/metadata/annotations"),
                },
                "spec": template["spec"],
            });
            // What is refused now is tried again with the pod.
            let _refused = self.make(now, CONTROLLER, ("", "persistentvolumeclaims"), namespace, object);
        }
    }

    fn tell_stateful_set(&mut self, now: Timestamp, key: &StoredKey, look: &Look<'_>) {
        let pods: Vec<Owned> = self.pods_in_order(now, look.set).into_iter().map(|(_, pod)| pod).collect();
        let Some(live) = self.stored(key).cloned() else { return };
        let patience = number(look.set, "/spec/minReadySeconds");
        let count = |counts: &dyn Fn(&Value) -> bool| {
            let counted = pods.iter().filter(|pod| !has_ended(&pod.object) && counts(&pod.object)).count();
            i64::try_from(counted).unwrap_or(i64::MAX)
        };
        let staying = |pod: &Value| !is_deleting(pod);
        let ready = count(&is_healthy);
        let updated = count(&|pod| staying(pod) && revision_of(pod) == look.update);
        let all = count(&|_| true);
        let complete = text(look.set, "/spec/updateStrategy/type") == "RollingUpdate"
            && updated == all
            && ready == all
            && all == look.replicas();
        let current = if complete { &look.update } else { &look.current };
        let mut told = Value::clone(&live);
        let status = &mut told["status"];
        status["replicas"] = json!(all);
        status["availableReplicas"] = json!(count(&|pod| is_healthy(pod) && is_available(pod, patience, now)));
        set_count(status, "readyReplicas", ready);
        set_count(status, "updatedReplicas", updated);
        set_count(status, "currentReplicas", count(&|pod| staying(pod) && revision_of(pod) == current));
        status["currentRevision"] = json!(current);
        status["updateRevision"] = json!(look.update);
        status["collisionCount"] = json!(0);
        status["observedGeneration"] = live["metadata"]["generation"].clone();
        self.replace_status(now, (CONTROLLER, MANAGER), key, &told);
        let in_use = [look.current.clone(), look.update.clone()];
        self.forget_revisions(now, CONTROLLER, look.set, &in_use);
        if patience > 0 && ready > 0 {
            let waits = count(&|pod| is_healthy(pod) && !is_available(pod, patience, now)) > 0;
            if waits {
                let task = Task::Reconcile(Workload::StatefulSet, key.clone());
                self.schedule_after(now, SignedDuration::from_secs(patience), task);
            }
        }
    }
}

/// The pod with a number: its name, its host name, its claims.
fn ordinal_pod(set: &Value, template: &Value, revision: &str, ordinal: i64) -> Value {
    let mut pod = ApiServer::pod_from(template, set);
    let own = format!("{}-{ordinal}", name(set));
    pod["metadata"]["name"] = json!(own);
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(own);
    pod["metadata"]["labels"][REVISION_LABEL] = json!(revision);
    pod["spec"]["hostname"] = json!(own);
    if let Some(service) = set.pointer("/spec/serviceName") {
        pod["spec"]["subdomain"] = service.clone();
    }
    let mut volumes: Vec<Value> = list(set, "/spec/volumeClaimTemplates")
        .iter()
        .map(|claim| {
            let claimed = format!("{}-{own}", name(claim));
            json!({"name": name(claim), "persistentVolumeClaim": {"claimName": claimed}})
        })
        .collect();
    let others =
        list(&pod, "/spec/volumes").iter().filter(|volume| !volumes.iter().any(|own| own["name"] == volume["name"]));
    let others: Vec<Value> = others.cloned().collect();
    volumes.extend(others);
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
    pod
}
