//! Schedules the workload controllers for each change. Inactive unless the server was created with workloads.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::owned_objects::matches_selector;
use super::pod_outcome::{OUTCOME_ANNOTATION, PodRule};
use super::writes::{builtin_key, controller_of};
use crate::object::fields::{at, is_deleting, text};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};
use crate::storage::store::Event;

/// Workload controllers of a server, and their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workloads {
    /// True if controllers create pods and endpoints.
    pub(crate) controllers: bool,
    /// True if pods are scheduled to nodes and run there.
    pub(crate) kubelet: bool,
    /// Outcomes of containers; the first matching rule applies.
    pub(crate) rules: Vec<PodRule>,
    /// Number of pod addresses that were assigned.
    pub(crate) addresses: u32,
}

/// Kinds that control pods, directly or indirectly.
const OWNERS: [(&str, &str, &str, Workload); 6] = [
    ("apps", "Deployment", "deployments", Workload::Deployment),
    ("apps", "ReplicaSet", "replicasets", Workload::ReplicaSet),
    ("apps", "StatefulSet", "statefulsets", Workload::StatefulSet),
    ("apps", "DaemonSet", "daemonsets", Workload::DaemonSet),
    ("batch", "Job", "jobs", Workload::Job),
    ("batch", "CronJob", "cronjobs", Workload::CronJob),
];

impl ApiServer {
    /// Adds the controllers that create pods and endpoints.
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        self.workloads.controllers = true;
        self
    }

    /// Runs one controller for one object.
    pub(super) fn reconcile(&mut self, now: Timestamp, workload: Workload, key: &StoredKey) {
        match workload {
            Workload::Deployment => self.reconcile_deployment(now, key),
            Workload::ReplicaSet => self.reconcile_replica_set(now, key),
            Workload::StatefulSet => self.reconcile_stateful_set(now, key),
            Workload::DaemonSet => self.reconcile_daemon_set(now, key),
            Workload::Job => self.reconcile_job(now, key),
            Workload::CronJob => self.reconcile_cron_job(now, key),
            Workload::Endpoints => self.reconcile_endpoints(now, key),
            Workload::EndpointSlice => self.reconcile_endpoint_slices(now, key),
            Workload::Scheduler => self.schedule_pod(now, key),
            Workload::Kubelet => self.run_pod(now, key),
        }
    }

    fn lag_of(&self, workload: Workload) -> SignedDuration {
        match workload {
            Workload::Deployment => self.lags.deployment,
            Workload::ReplicaSet => self.lags.replica_set,
            Workload::StatefulSet => self.lags.stateful_set,
            Workload::DaemonSet => self.lags.daemon_set,
            Workload::Job => self.lags.job,
            Workload::CronJob => self.lags.cron_job,
            Workload::Endpoints => self.lags.endpoints,
            Workload::EndpointSlice => self.lags.endpoint_slice,
            Workload::Scheduler => self.lags.scheduling,
            Workload::Kubelet => self.lags.pod_start,
        }
    }

    pub(super) fn schedule_workload(&mut self, now: Timestamp, workload: Workload, key: StoredKey) {
        self.schedule_after(now, self.lag_of(workload), Task::Reconcile(workload, key));
    }

    /// Schedules the workload controllers that react to a change.
    pub(super) fn schedule_workloads(&mut self, now: Timestamp, event: &Event) {
        if self.workloads.controllers {
            self.schedule_controllers(now, event);
        }
        if self.workloads.kubelet {
            self.schedule_kubelet(now, event);
        }
    }

    fn schedule_controllers(&mut self, now: Timestamp, event: &Event) {
        let key = &event.key;
        let (group, plural) = (key.group.as_str(), key.plural.as_str());
        let own_controller =
            OWNERS.iter().find(|(owner_group, _, owner_plural, _)| *owner_group == group && *owner_plural == plural);
        if let (Some((.., workload)), false) = (own_controller, event.gone) {
            self.schedule_workload(now, *workload, StoredKey::clone(key));
        }
        self.schedule_owner(now, key, &event.object);
        match (group, plural) {
            ("", "pods") => self.schedule_dependents_of_pod(now, event),
            ("", "services") => self.schedule_service(now, key.namespace.as_deref(), &key.name),
            ("", "endpoints") => self.schedule_service(now, key.namespace.as_deref(), &key.name),
            ("discovery.k8s.io", "endpointslices") => {
                let service =
                    at(&event.object, "/metadata/labels").map(|labels| labels["kubernetes.io/service-name"].clone());
                if let Some(service) = service.as_ref().and_then(Value::as_str) {
                    self.schedule_service(now, key.namespace.as_deref(), service);
                }
            }
            ("", "nodes") => self.schedule_all(now, Workload::DaemonSet, ("apps", "daemonsets")),
            _ => {}
        }
    }

    /// Schedules the controller of an object's owner.
    fn schedule_owner(&mut self, now: Timestamp, key: &StoredKey, object: &Value) {
        let Some(reference) = controller_of(object) else { return };
        let (kind, owner_name) = (text(reference, "/kind"), text(reference, "/name"));
        if let Some((group, kind, plural, workload)) = OWNERS.iter().find(|(_, owner_kind, ..)| *owner_kind == kind) {
            self.schedule_workload(
                now,
                *workload,
                builtin_key(group, kind, plural, key.namespace.as_deref(), owner_name),
            );
        }
    }

    fn schedule_dependents_of_pod(&mut self, now: Timestamp, event: &Event) {
        let Some(namespace) = event.key.namespace.clone() else { return };
        if controller_of(&event.object).is_none() && !event.gone {
            self.schedule_adopters(now, &namespace, &event.object);
        }
        let states: Vec<&Arc<Stored>> = event.before.iter().chain([&event.object]).collect();
        let services: Vec<String> = self
            .store
            .in_namespace("", "services", &namespace)
            .filter(|entry| states.iter().any(|pod| is_selected_by(&entry.object, pod)))
            .map(|entry| entry.key.name.clone())
            .collect();
        for service in services {
            self.schedule_service(now, Some(&namespace), &service);
        }
    }

    /// Schedules the controllers whose selectors match a pod without controller, so that they can adopt it.
    fn schedule_adopters(&mut self, now: Timestamp, namespace: &str, pod: &Value) {
        let mut adopters = Vec::new();
        for (group, _, plural, workload) in
            OWNERS.iter().filter(|(_, kind, ..)| !["Deployment", "CronJob"].contains(kind))
        {
            let candidates = self.store.in_namespace(group, plural, namespace);
            let matching = candidates.filter(|entry| matches_selector(at(&entry.object, "/spec/selector"), pod));
            adopters.extend(matching.map(|entry| (*workload, StoredKey::clone(&entry.key))));
        }
        for (workload, key) in adopters {
            self.schedule_workload(now, workload, key);
        }
    }

    fn schedule_service(&mut self, now: Timestamp, namespace: Option<&str>, name: &str) {
        let key = builtin_key("", "Service", "services", namespace, name);
        self.schedule_workload(now, Workload::Endpoints, key.clone());
        self.schedule_workload(now, Workload::EndpointSlice, key);
    }

    fn schedule_all(&mut self, now: Timestamp, workload: Workload, (group, plural): (&str, &str)) {
        let shelf = self.store.shelf(group, plural).into_iter().flat_map(|shelf| shelf.values());
        let keys: Vec<StoredKey> = shelf.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.schedule_workload(now, workload, key);
        }
    }

    /// Schedules the scheduler for a pod without a node, and the kubelet for a pod with a node that it must act on.
    fn schedule_kubelet(&mut self, now: Timestamp, event: &Event) {
        let key = StoredKey::clone(&event.key);
        match (key.group.as_str(), key.plural.as_str(), event.gone) {
            ("", "nodes", _) => self.schedule_unscheduled_pods(now),
            ("", "pods", false) => {
                let pod = &event.object;
                let before = event.before.as_deref();
                let has_changed = |pointer: &str| before.and_then(|before| at(before, pointer)) != at(pod, pointer);
                if text(pod, "/spec/nodeName").is_empty() {
                    if before.is_none() || has_changed("/spec") {
                        self.schedule_workload(now, Workload::Scheduler, key);
                    }
                } else if is_deleting(pod) {
                    if has_changed("/metadata/deletionTimestamp") || has_changed("/metadata/finalizers") {
                        self.schedule_after(now, self.lags.pod_stop, Task::Reconcile(Workload::Kubelet, key));
                    }
                } else if has_changed("/spec/nodeName")
                    || has_changed(&format!("/metadata/annotations/{}", OUTCOME_ANNOTATION.replace('/', "~1")))
                {
                    self.schedule_workload(now, Workload::Kubelet, key);
                }
            }
            _ => {}
        }
    }

    fn schedule_unscheduled_pods(&mut self, now: Timestamp) {
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        let waiting = shelf.filter(|entry| text(&entry.object, "/spec/nodeName").is_empty());
        let keys: Vec<StoredKey> = waiting.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.schedule_workload(now, Workload::Scheduler, key);
        }
    }

    /// Schedules the kubelet for every pod that has a node.
    pub(super) fn reschedule_running_pods(&mut self, now: Timestamp) {
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        let running = shelf.filter(|entry| !text(&entry.object, "/spec/nodeName").is_empty());
        let keys: Vec<StoredKey> = running.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.schedule_workload(now, Workload::Kubelet, key);
        }
    }
}

/// True if a service selects a pod.
pub(super) fn is_selected_by(service: &Value, pod: &Value) -> bool {
    let Some(selector) = at(service, "/spec/selector").and_then(Value::as_object) else { return false };
    let labels = at(pod, "/metadata/labels");
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}
