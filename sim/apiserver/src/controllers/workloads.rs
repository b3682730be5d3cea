//! Which controllers of workloads look at which change. Nothing here runs unless the server was made with workloads.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::owned_objects::fits;
use super::pod_fate::{FATE_ANNOTATION, PodRule};
use super::writes::{controlled_by, key_of};
use crate::object::fields::{at, is_deleting, text};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::server::ApiServer;
use crate::state::schedule::{Task, Workload};
use crate::storage::store::Event;

/// Which controllers of workloads a server has, and what they remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workloads {
    /// Whether controllers make pods and endpoints.
    pub(crate) controllers: bool,
    /// Whether pods get nodes, and run there.
    pub(crate) kubelet: bool,
    /// What becomes of pods; the first rule that fits decides.
    pub(crate) rules: Vec<PodRule>,
    /// How many pods got an address.
    pub(crate) addresses: u32,
}

/// The kinds that control pods, or what controls them.
const OWNERS: [(&str, &str, &str, Workload); 6] = [
    ("apps", "Deployment", "deployments", Workload::Deployment),
    ("apps", "ReplicaSet", "replicasets", Workload::ReplicaSet),
    ("apps", "StatefulSet", "statefulsets", Workload::StatefulSet),
    ("apps", "DaemonSet", "daemonsets", Workload::DaemonSet),
    ("batch", "Job", "jobs", Workload::Job),
    ("batch", "CronJob", "cronjobs", Workload::CronJob),
];

impl ApiServer {
    /// The same server with the controllers that make pods and endpoints, beside those that it has already.
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        self.workloads.controllers = true;
        self
    }

    /// Does the work of one controller on one object.
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

    pub(super) fn plan(&mut self, now: Timestamp, workload: Workload, key: StoredKey) {
        self.schedule_after(now, self.lag_of(workload), Task::Reconcile(workload, key));
    }

    /// Plans what the controllers of workloads do about a change.
    pub(super) fn plan_workloads(&mut self, now: Timestamp, event: &Event) {
        if self.workloads.controllers {
            self.plan_controllers(now, event);
        }
        if self.workloads.kubelet {
            self.plan_kubelet(now, event);
        }
    }

    fn plan_controllers(&mut self, now: Timestamp, event: &Event) {
        let key = &event.key;
        let (group, plural) = (key.group.as_str(), key.plural.as_str());
        let itself = OWNERS.iter().find(|(owning, _, owner, _)| *owning == group && *owner == plural);
        if let (Some((.., workload)), false) = (itself, event.gone) {
            self.plan(now, *workload, StoredKey::clone(key));
        }
        self.plan_owner(now, key, &event.object);
        match (group, plural) {
            ("", "pods") => self.plan_around_pod(now, event),
            ("", "services") => self.plan_service(now, key.namespace.as_deref(), &key.name),
            ("", "endpoints") => self.plan_service(now, key.namespace.as_deref(), &key.name),
            ("discovery.k8s.io", "endpointslices") => {
                let service =
                    at(&event.object, "/metadata/labels").map(|labels| labels["kubernetes.io/service-name"].clone());
                if let Some(service) = service.as_ref().and_then(Value::as_str) {
                    self.plan_service(now, key.namespace.as_deref(), service);
                }
            }
            ("", "nodes") => self.plan_all(now, Workload::DaemonSet, ("apps", "daemonsets")),
            _ => {}
        }
    }

    /// Whoever controls an object looks again when it changes.
    fn plan_owner(&mut self, now: Timestamp, key: &StoredKey, object: &Value) {
        let Some(reference) = controlled_by(object) else { return };
        let (kind, own) = (text(reference, "/kind"), text(reference, "/name"));
        if let Some((group, kind, plural, workload)) = OWNERS.iter().find(|(_, owning, ..)| *owning == kind) {
            self.plan(now, *workload, key_of(group, kind, plural, key.namespace.as_deref(), own));
        }
    }

    fn plan_around_pod(&mut self, now: Timestamp, event: &Event) {
        let Some(namespace) = event.key.namespace.clone() else { return };
        if controlled_by(&event.object).is_none() && !event.gone {
            self.plan_adopters(now, &namespace, &event.object);
        }
        let states: Vec<&Arc<Stored>> = event.before.iter().chain([&event.object]).collect();
        let services: Vec<String> = self
            .store
            .in_namespace("", "services", &namespace)
            .filter(|entry| states.iter().any(|pod| selects(&entry.object, pod)))
            .map(|entry| entry.key.name.clone())
            .collect();
        for service in services {
            self.plan_service(now, Some(&namespace), &service);
        }
    }

    /// Whoever selects a pod that belongs to nobody may adopt it.
    fn plan_adopters(&mut self, now: Timestamp, namespace: &str, pod: &Value) {
        let mut adopters = Vec::new();
        for (group, _, plural, workload) in
            OWNERS.iter().filter(|(_, kind, ..)| !["Deployment", "CronJob"].contains(kind))
        {
            let here = self.store.in_namespace(group, plural, namespace);
            let selecting = here.filter(|entry| fits(at(&entry.object, "/spec/selector"), pod));
            adopters.extend(selecting.map(|entry| (*workload, StoredKey::clone(&entry.key))));
        }
        for (workload, key) in adopters {
            self.plan(now, workload, key);
        }
    }

    fn plan_service(&mut self, now: Timestamp, namespace: Option<&str>, name: &str) {
        let key = key_of("", "Service", "services", namespace, name);
        self.plan(now, Workload::Endpoints, key.clone());
        self.plan(now, Workload::EndpointSlice, key);
    }

    fn plan_all(&mut self, now: Timestamp, workload: Workload, (group, plural): (&str, &str)) {
        let shelf = self.store.shelf(group, plural).into_iter().flat_map(|shelf| shelf.values());
        let keys: Vec<StoredKey> = shelf.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.plan(now, workload, key);
        }
    }

    /// A pod without a node goes to the scheduler; one with a node is its kubelet's, when that has a reason to look.
    fn plan_kubelet(&mut self, now: Timestamp, event: &Event) {
        let key = StoredKey::clone(&event.key);
        match (key.group.as_str(), key.plural.as_str(), event.gone) {
            ("", "nodes", _) => self.plan_unscheduled(now),
            ("", "pods", false) => {
                let pod = &event.object;
                let before = event.before.as_deref();
                let moved = |pointer: &str| before.and_then(|before| at(before, pointer)) != at(pod, pointer);
                if text(pod, "/spec/nodeName").is_empty() {
                    if before.is_none() || moved("/spec") {
                        self.plan(now, Workload::Scheduler, key);
                    }
                } else if is_deleting(pod) {
                    if moved("/metadata/deletionTimestamp") || moved("/metadata/finalizers") {
                        self.schedule_after(now, self.lags.pod_stop, Task::Reconcile(Workload::Kubelet, key));
                    }
                } else if moved("/spec/nodeName")
                    || moved(&format!("/metadata/annotations/{}", FATE_ANNOTATION.replace('/', "~1")))
                {
                    self.plan(now, Workload::Kubelet, key);
                }
            }
            _ => {}
        }
    }

    fn plan_unscheduled(&mut self, now: Timestamp) {
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        let waiting = shelf.filter(|entry| text(&entry.object, "/spec/nodeName").is_empty());
        let keys: Vec<StoredKey> = waiting.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.plan(now, Workload::Scheduler, key);
        }
    }

    /// Every pod that has a node is looked at again.
    pub(super) fn plan_running(&mut self, now: Timestamp) {
        let shelf = self.store.shelf("", "pods").into_iter().flat_map(|shelf| shelf.values());
        let running = shelf.filter(|entry| !text(&entry.object, "/spec/nodeName").is_empty());
        let keys: Vec<StoredKey> = running.map(|entry| StoredKey::clone(&entry.key)).collect();
        for key in keys {
            self.plan(now, Workload::Kubelet, key);
        }
    }
}

/// Whether a service selects a pod.
pub(super) fn selects(service: &Value, pod: &Value) -> bool {
    let Some(selector) = at(service, "/spec/selector").and_then(Value::as_object) else { return false };
    let labels = at(pod, "/metadata/labels");
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}
