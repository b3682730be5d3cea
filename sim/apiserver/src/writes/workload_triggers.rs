//! Reconcile tasks of the workload controllers that a committed change schedules. Nothing is scheduled unless the server
//! runs workload controllers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::object::fields::{array_at, is_deleting, string_at, value_at};
use crate::object::key::{StoredKey, builtin_key};
use crate::object::label_selectors::{is_selected_by, selects_pod};
use crate::object::owners::controller_of;
use crate::object::stored::Stored;
use crate::state::pod_outcome::OUTCOME_ANNOTATION;
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;
use crate::storage::store::Event;

/// Kinds that control pods, directly or indirectly.
const OWNERS: [(&str, &str, &str, Workload); 7] = [
    ("apps", "Deployment", "deployments", Workload::Deployment),
    ("apps", "ReplicaSet", "replicasets", Workload::ReplicaSet),
    ("", "ReplicationController", "replicationcontrollers", Workload::ReplicationController),
    ("apps", "StatefulSet", "statefulsets", Workload::StatefulSet),
    ("apps", "DaemonSet", "daemonsets", Workload::DaemonSet),
    ("batch", "Job", "jobs", Workload::Job),
    ("batch", "CronJob", "cronjobs", Workload::CronJob),
];

fn delay_of(state: &ServerState, workload: Workload) -> SignedDuration {
    match workload {
        Workload::Deployment => state.delays.deployment,
        Workload::ReplicaSet | Workload::ReplicationController => state.delays.replica_set,
        Workload::StatefulSet => state.delays.stateful_set,
        Workload::DaemonSet => state.delays.daemon_set,
        Workload::Job => state.delays.job,
        Workload::CronJob => state.delays.cron_job,
        Workload::Endpoints => state.delays.endpoints,
        Workload::EndpointSlice => state.delays.endpoint_slice,
        Workload::Scheduler | Workload::PodReadiness => state.delays.scheduling,
        Workload::Kubelet => state.delays.pod_start,
        Workload::PodCleanup => POD_CLEANUP_DELAY,
    }
}

/// Delay of the removal of pods without their node, as in the real controller.
const POD_CLEANUP_DELAY: SignedDuration = SignedDuration::from_secs(40);

/// Schedules the removal of the pods of a removed node.
fn schedule_cleanup(state: &mut ServerState, now: Timestamp, node: &str) {
    let collection = state.store.collection("", "pods").into_iter().flat_map(|collection| collection.values());
    let stranded = collection.filter(|entry| string_at(&entry.object, "/spec/nodeName") == node);
    let keys: Vec<StoredKey> = stranded.map(|entry| StoredKey::clone(&entry.key)).collect();
    for key in keys {
        schedule_workload(state, now, Workload::PodCleanup, key);
    }
}

pub(crate) fn schedule_workload(state: &mut ServerState, now: Timestamp, workload: Workload, key: StoredKey) {
    state.schedule_after(now, delay_of(state, workload), Task::Reconcile(workload, key));
}

/// Schedules the workload controllers that react to a change.
pub(crate) fn schedule_workloads(state: &mut ServerState, now: Timestamp, event: &Event) {
    if state.workloads.controllers {
        schedule_controllers(state, now, event);
    }
    if state.workloads.kubelet {
        schedule_kubelet(state, now, event);
    }
}

fn schedule_controllers(state: &mut ServerState, now: Timestamp, event: &Event) {
    let key = &event.key;
    let (group, plural) = (key.group.as_str(), key.plural.as_str());
    let own_controller =
        OWNERS.iter().find(|(owner_group, _, owner_plural, _)| *owner_group == group && *owner_plural == plural);
    // The pods of a removed Job are released from its finalizer.
    if let Some((.., workload)) = own_controller.filter(|(.., workload)| !event.gone || *workload == Workload::Job) {
        schedule_workload(state, now, *workload, StoredKey::clone(key));
    }
    schedule_owner(state, now, key, &event.object);
    if let Some(before) = event.before.as_ref().filter(|before| controller_of(before) != controller_of(&event.object)) {
        schedule_owner(state, now, key, before);
    }
    match (group, plural) {
        ("", "pods") => schedule_dependents_of_pod(state, now, event),
        ("", "services") => schedule_service(state, now, key.namespace.as_deref(), &key.name),
        ("", "endpoints") => schedule_service(state, now, key.namespace.as_deref(), &key.name),
        ("discovery.k8s.io", "endpointslices") => {
            let service =
                value_at(&event.object, "/metadata/labels").map(|labels| labels["kubernetes.io/service-name"].clone());
            if let Some(service) = service.as_ref().and_then(Value::as_str) {
                schedule_service(state, now, key.namespace.as_deref(), service);
            }
        }
        ("", "nodes") => schedule_all(state, now, Workload::DaemonSet, ("apps", "daemonsets")),
        _ => {}
    }
}

/// Schedules the controller of an object's owner.
fn schedule_owner(state: &mut ServerState, now: Timestamp, key: &StoredKey, object: &Value) {
    let Some(reference) = controller_of(object) else { return };
    let (kind, owner_name) = (string_at(reference, "/kind"), string_at(reference, "/name"));
    if let Some((group, kind, plural, workload)) = OWNERS.iter().find(|(_, owner_kind, ..)| *owner_kind == kind) {
        schedule_workload(
            state,
            now,
            *workload,
            builtin_key(group, kind, plural, key.namespace.as_deref(), owner_name),
        );
    }
}

fn schedule_dependents_of_pod(state: &mut ServerState, now: Timestamp, event: &Event) {
    let Some(namespace) = event.key.namespace.clone() else { return };
    if controller_of(&event.object).is_none() && !event.gone {
        schedule_adopters(state, now, &namespace, &event.object);
    }
    let states: Vec<&Arc<Stored>> = event.before.iter().chain([&event.object]).collect();
    let services: Vec<String> = state
        .store
        .in_namespace("", "services", &namespace)
        .filter(|entry| states.iter().any(|pod| is_selected_by(&entry.object, pod)))
        .map(|entry| entry.key.name.clone())
        .collect();
    for service in services {
        schedule_service(state, now, Some(&namespace), &service);
    }
}

/// Schedules the controllers whose selectors match a pod without controller, so that they can adopt it.
fn schedule_adopters(state: &mut ServerState, now: Timestamp, namespace: &str, pod: &Value) {
    let mut adopters = Vec::new();
    for (group, _, plural, workload) in OWNERS.iter().filter(|(_, kind, ..)| !["Deployment", "CronJob"].contains(kind))
    {
        let candidates = state.store.in_namespace(group, plural, namespace);
        let matching = candidates.filter(|entry| selects_pod(&entry.object, pod));
        adopters.extend(matching.map(|entry| (*workload, StoredKey::clone(&entry.key))));
    }
    for (workload, key) in adopters {
        schedule_workload(state, now, workload, key);
    }
}

fn schedule_service(state: &mut ServerState, now: Timestamp, namespace: Option<&str>, name: &str) {
    let key = builtin_key("", "Service", "services", namespace, name);
    schedule_workload(state, now, Workload::Endpoints, key.clone());
    schedule_workload(state, now, Workload::EndpointSlice, key);
}

fn schedule_all(state: &mut ServerState, now: Timestamp, workload: Workload, (group, plural): (&str, &str)) {
    let collection = state.store.collection(group, plural).into_iter().flat_map(|collection| collection.values());
    let keys: Vec<StoredKey> = collection.map(|entry| StoredKey::clone(&entry.key)).collect();
    for key in keys {
        schedule_workload(state, now, workload, key);
    }
}

/// Schedules the scheduler for a pod without a node, and the kubelet for a pod with a node that it must act on.
fn schedule_kubelet(state: &mut ServerState, now: Timestamp, event: &Event) {
    let key = StoredKey::clone(&event.key);
    match (key.group.as_str(), key.plural.as_str(), event.gone) {
        ("", "nodes", is_removed) => {
            schedule_unscheduled_pods(state, now);
            if is_removed {
                schedule_cleanup(state, now, &key.name);
            }
        }
        ("", "pods", false) => {
            let pod = &event.object;
            let before = event.before.as_deref();
            let has_changed =
                |pointer: &str| before.and_then(|before| value_at(before, pointer)) != value_at(pod, pointer);
            if string_at(pod, "/spec/nodeName").is_empty() {
                if before.is_none() || has_changed("/spec") {
                    schedule_workload(state, now, Workload::Scheduler, key);
                }
            } else if is_deleting(pod) {
                if has_changed("/metadata/deletionTimestamp") || has_changed("/metadata/finalizers") {
                    state.schedule_after(now, state.delays.pod_stop, Task::Reconcile(Workload::Kubelet, key));
                }
            } else if has_changed("/spec/nodeName")
                || has_changed(&format!("/metadata/annotations/{}", OUTCOME_ANNOTATION.replace('/', "~1")))
            {
                if state.store.find("", "nodes", None, string_at(pod, "/spec/nodeName")).is_none() {
                    schedule_workload(state, now, Workload::PodCleanup, StoredKey::clone(&key));
                }
                schedule_workload(state, now, Workload::Kubelet, key);
            } else if has_changed("/spec/ephemeralContainers")
                || !array_at(pod, "/spec/readinessGates").is_empty() && has_changed("/status/conditions")
            {
                schedule_workload(state, now, Workload::PodReadiness, key);
            }
        }
        _ => {}
    }
}

fn schedule_unscheduled_pods(state: &mut ServerState, now: Timestamp) {
    let collection = state.store.collection("", "pods").into_iter().flat_map(|collection| collection.values());
    let waiting = collection.filter(|entry| string_at(&entry.object, "/spec/nodeName").is_empty());
    let keys: Vec<StoredKey> = waiting.map(|entry| StoredKey::clone(&entry.key)).collect();
    for key in keys {
        schedule_workload(state, now, Workload::Scheduler, key);
    }
}

/// Schedules the kubelet for every pod that has a node.
pub(crate) fn reschedule_running_pods(state: &mut ServerState, now: Timestamp) {
    let collection = state.store.collection("", "pods").into_iter().flat_map(|collection| collection.values());
    let running = collection.filter(|entry| !string_at(&entry.object, "/spec/nodeName").is_empty());
    let keys: Vec<StoredKey> = running.map(|entry| StoredKey::clone(&entry.key)).collect();
    for key in keys {
        schedule_workload(state, now, Workload::Kubelet, key);
    }
}
