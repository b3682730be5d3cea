//! Daemon sets: one pod on each node that will have it.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::owned_objects::{Owned, has_ended, is_available, is_ready};
use super::scheduler::{intolerable, wants};
use super::template_hash::template_hash;
use super::writes::{MANAGER, number, set_count, words};
use crate::object::fields::{is_deleting, list, name, text};
use crate::object::key::StoredKey;
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};

const CONTROLLER: &str = "daemonset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
/// What every pod of a daemon set tolerates.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// How long until a pod that was refused is made again.
const CREATE_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// The node that a pod is on, or is meant for.
fn node_of(pod: &Value) -> String {
    let placed = text(pod, "/spec/nodeName");
    if !placed.is_empty() {
        return placed.to_owned();
    }
    let pointer = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    text(pod, pointer).to_owned()
}

impl ApiServer {
    pub(super) fn reconcile_daemon_set(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(set) = self.stored(key).cloned() else { return };
        let hash = template_hash(&set["spec"]["template"], None);
        let mut labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        labels[REVISION_LABEL] = json!(hash);
        let Some(revision) = self.current_revision(now, CONTROLLER, &set, &hash, labels) else { return };
        let nodes: Vec<Value> = self.nodes().filter(|node| runs_on(&set, node)).cloned().collect();
        let nodes: Vec<String> = nodes.iter().map(|node| name(node).to_owned()).collect();
        if !is_deleting(&set) {
            self.place_daemons(now, key, &set, &hash, &nodes);
            self.replace_daemons(now, &set, &hash, &nodes);
        }
        self.tell_daemon_set(now, key, &set, &hash, &nodes);
        self.forget_revisions(now, CONTROLLER, &set, &[revision]);
    }

    /// Makes a pod for each node that has none, and deletes those that are where they should not be.
    fn place_daemons(&mut self, now: Timestamp, key: &StoredKey, set: &Value, hash: &str, nodes: &[String]) {
        let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
        for pod in &pods {
            let misplaced = !nodes.contains(&node_of(&pod.object)) || has_ended(&pod.object);
            if misplaced && !is_deleting(&pod.object) {
                self.discard(now, CONTROLLER, &pod.key);
            }
        }
        for node in nodes {
            let on_it: Vec<&Owned> = pods.iter().filter(|pod| node_of(&pod.object) == *node).collect();
            if !on_it.is_empty() {
                continue;
            }
            let pod = daemon(set, hash, node);
            match self.make(now, CONTROLLER, ("", "pods"), text(set, "/metadata/namespace"), pod) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    self.tell(now, CONTROLLER, set, ("Normal", "SuccessfulCreate"), &message);
                }
                Err(error) => {
                    let message = format!("Error creating: {}", words(&error));
                    self.tell(now, CONTROLLER, set, ("Warning", "FailedCreate"), &message);
                    let task = Task::Reconcile(Workload::DaemonSet, key.clone());
                    return self.schedule_after(now, CREATE_AGAIN, task);
                }
            }
        }
    }

    /// Deletes pods of an older template, as many as may be missing.
    fn replace_daemons(&mut self, now: Timestamp, set: &Value, hash: &str, nodes: &[String]) {
        if text(set, "/spec/updateStrategy/type") == "OnDelete" {
            return;
        }
        let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
        let unavailable = nodes.iter().filter(|node| {
            !pods.iter().any(|pod| node_of(&pod.object) == **node && is_ready(&pod.object) && !is_deleting(&pod.object))
        });
        let mut spare = may_miss(set, nodes.len()).saturating_sub(unavailable.count());
        for pod in pods.iter().filter(|pod| !is_deleting(&pod.object) && !is_of(&pod.object, hash)) {
            // One that does not work anyway may go at once.
            if is_ready(&pod.object) {
                if spare == 0 {
                    continue;
                }
                spare -= 1;
            }
            self.discard(now, CONTROLLER, &pod.key);
            let message = format!("Deleted pod: {}", pod.key.name);
            self.tell(now, CONTROLLER, set, ("Normal", "SuccessfulDelete"), &message);
        }
    }

    fn tell_daemon_set(&mut self, now: Timestamp, key: &StoredKey, set: &Value, hash: &str, nodes: &[String]) {
        let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
        let Some(live) = self.stored(key).cloned() else { return };
        let patience = number(set, "/spec/minReadySeconds");
        let on_nodes = |counts: &dyn Fn(&Value) -> bool| {
            let found = |node: &&String| {
                pods.iter()
                    .any(|pod| node_of(&pod.object) == **node && !is_deleting(&pod.object) && counts(&pod.object))
            };
            i64::try_from(nodes.iter().filter(found).count()).unwrap_or(i64::MAX)
        };
        let desired = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
        let misplaced = pods.iter().filter(|pod| !nodes.contains(&node_of(&pod.object))).count();
        let available = on_nodes(&|pod| is_available(pod, patience, now));
        let ready = on_nodes(&is_ready);
        let mut told = Value::clone(&live);
        let status = &mut told["status"];
        status["desiredNumberScheduled"] = json!(desired);
        status["currentNumberScheduled"] = json!(on_nodes(&|_| true));
        status["numberMisscheduled"] = json!(misplaced);
        status["numberReady"] = json!(ready);
        set_count(status, "updatedNumberScheduled", on_nodes(&|pod| is_of(pod, hash)));
        set_count(status, "numberAvailable", available);
        set_count(status, "numberUnavailable", desired - available);
        status["observedGeneration"] = live["metadata"]["generation"].clone();
        self.replace_status(now, (CONTROLLER, MANAGER), key, &told);
        if patience > 0 && ready > available {
            let task = Task::Reconcile(Workload::DaemonSet, key.clone());
            self.schedule_after(now, SignedDuration::from_secs(patience), task);
        }
    }
}

fn is_of(pod: &Value, hash: &str) -> bool {
    pod["metadata"]["labels"].get(REVISION_LABEL).is_some_and(|found| found == hash)
}

/// How many nodes may be without a pod that works.
fn may_miss(set: &Value, nodes: usize) -> usize {
    let value = set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let percent = value.and_then(Value::as_str).and_then(|text| text.strip_suffix('%'));
    let most = match percent {
        Some(percent) => (nodes * percent.parse::<usize>().unwrap_or_default()).div_ceil(100),
        None => value.and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok()).unwrap_or(1),
    };
    most.max(1)
}

/// Whether a set wants a pod on a node.
fn runs_on(set: &Value, node: &Value) -> bool {
    let pod = json!({"spec": tolerant(&set["spec"]["template"]["spec"])});
    wants(&pod, node) && intolerable(&pod, node, &["NoSchedule", "NoExecute"]).is_none()
}

/// What a pod of a daemon set tolerates besides what its template says.
fn tolerant(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut tolerations = list(&spec, "/tolerations").to_vec();
    for (key, effect) in TOLERATED {
        let known = tolerations.iter().any(|known| known["key"] == key && known["effect"] == effect);
        if !known {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
        }
    }
    spec["tolerations"] = json!(tolerations);
    spec
}

/// The pod for one node.
fn daemon(set: &Value, hash: &str, node: &str) -> Value {
    let mut pod = ApiServer::pod_from(&set["spec"]["template"], set);
    pod["metadata"]["labels"][REVISION_LABEL] = json!(hash);
    let generation = number(set, "/metadata/generation").to_string();
    pod["metadata"]["labels"]["pod-template-generation"] = json!(generation);
    pod["spec"] = tolerant(&pod["spec"]);
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    let wanted = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = pod.pointer_mut(&format!("/spec/affinity/nodeAffinity/{wanted}/nodeSelectorTerms"));
    match terms.and_then(Value::as_array_mut) {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = json!([field])),
        None => pod["spec"]["affinity"]["nodeAffinity"][wanted] = required,
    }
    pod
}
