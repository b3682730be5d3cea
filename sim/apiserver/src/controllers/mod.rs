//! The controllers of the control plane. `react` schedules the consequences of each change; `run` executes them at a later tick.

mod controller_revisions;
mod counting;
mod crd;
mod cron_job;
mod cron_schedule;
mod daemon_set;
mod deployment;
mod deployment_status;
mod endpoints;
mod garbage_collector;
mod job;
mod job_status;
mod kubelet;
mod namespace;
mod owned_objects;
mod pod_outcome;
mod replica_set;
mod rollout;
mod scheduler;
mod stateful_set;
mod template_hash;
mod volume_protection;
mod workloads;
mod writes;

pub(crate) use crd::set_condition;
pub use pod_outcome::{PodOutcome, PodRule};
pub(crate) use workloads::Workloads;

use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_merge::{Shape, Writer, track_update};

use crate::object::fields::{finalizers, is_deleting, list, stamp, text, uid};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::state::schedule::Task;
use crate::storage::store::Event;
use crate::verbs::{FOREGROUND, ORPHAN};

const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

impl ApiServer {
    /// Executes one due task.
    pub(crate) fn run(&mut self, now: Timestamp, task: Task) {
        match task {
            Task::FurnishNamespace(name) => self.create_default_objects(now, &name),
            Task::TerminateNamespace(name) => self.terminate_namespace(now, &name),
            Task::EstablishDefinition(name) => self.establish_crd(now, &name),
            Task::ServeDefinition(name) => self.serve_crd(&name),
            Task::FinalizeDefinition(name) => self.finalize_crd(now, &name),
            Task::CollectDependents(uid) => self.collect_dependents(now, &uid),
            Task::CheckOwners(key) => self.check_owners(now, &key),
            Task::FinishDeletion(key) => self.finish_deletion(now, &key),
            Task::Count(key) => self.update_counts(now, &key),
            Task::Unprotect(key) => self.unprotect(now, &key),
            Task::Reconcile(workload, key) => self.reconcile(now, workload, &key),
        }
    }

    /// Schedules the consequences of a change.
    pub(crate) fn react(&mut self, now: Timestamp, event: &Event) {
        let key = &event.key;
        match (key.group.as_str(), key.plural.as_str()) {
            ("", "namespaces") => self.react_to_namespace_change(now, event),
            CRDS => self.react_to_crd_change(now, event),
            _ => {}
        }
        if let Some(namespace) = &key.namespace {
            self.schedule_counting(now, namespace);
        }
        self.schedule_workloads(now, event);
        if event.gone {
            self.react_to_removal(now, event);
        } else {
            self.schedule_unprotecting(now, key, &event.object);
            self.react_to_write(now, event);
        }
    }

    fn react_to_namespace_change(&mut self, now: Timestamp, event: &Event) {
        let name = event.key.name.clone();
        if event.before.is_none() {
            self.schedule_after(now, self.lags.namespace_furniture, Task::FurnishNamespace(name));
        } else if !event.gone && is_deleting(&event.object) {
            self.schedule_after(now, self.lags.namespace_termination, Task::TerminateNamespace(name));
        }
    }

    fn react_to_crd_change(&mut self, now: Timestamp, event: &Event) {
        let name = event.key.name.clone();
        if event.gone {
            self.stop_serving(&event.object);
        } else if is_deleting(&event.object) {
            self.schedule_after(now, self.lags.definition_finalization, Task::FinalizeDefinition(name));
        } else if event.before.as_ref().is_none_or(|before| before.get("spec") != event.object.get("spec")) {
            self.schedule_after(now, self.lags.definition_established, Task::EstablishDefinition(name));
        }
    }

    fn react_to_removal(&mut self, now: Timestamp, event: &Event) {
        let key = &event.key;
        let removed_uid = uid(&event.object);
        if !self.store.dependents(removed_uid).is_empty() {
            self.schedule_after(now, self.lags.garbage_collection, Task::CollectDependents(removed_uid.to_owned()));
        }
        for owner in self.owners_of(key, &event.object).into_iter().filter_map(|owner| owner.key) {
            let is_waiting = self.stored(&owner).is_some_and(|owner| finalizers(owner).contains(&FOREGROUND));
            if is_waiting {
                self.schedule_after(now, self.lags.garbage_collection, Task::FinishDeletion(owner));
            }
        }
        if let (Some(namespace), "", "pods") = (&key.namespace, key.group.as_str(), key.plural.as_str()) {
            self.schedule_unprotecting_claims(now, namespace);
        }
        if let Some(namespace) = &key.namespace {
            let terminating = self.get("", "namespaces", None, namespace).is_some_and(|object| is_deleting(object));
            let default_objects = [("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")];
            if terminating {
                self.schedule_after(now, self.lags.namespace_termination, Task::TerminateNamespace(namespace.clone()));
            } else if key.group.is_empty() && default_objects.contains(&(key.plural.as_str(), key.name.as_str())) {
                self.schedule_after(now, self.lags.namespace_furniture, Task::FurnishNamespace(namespace.clone()));
            }
        }
        let crd = format!("{}.{}", key.plural, key.group);
        if self.get(CRDS.0, CRDS.1, None, &crd).is_some_and(|object| is_deleting(object)) {
            self.schedule_after(now, self.lags.definition_finalization, Task::FinalizeDefinition(crd));
        }
    }

    fn react_to_write(&mut self, now: Timestamp, event: &Event) {
        let pointer = "/metadata/ownerReferences";
        let owners = list(&event.object, pointer);
        let previous_owners = event.before.as_ref().map_or(&[] as &[Value], |before| list(before, pointer));
        if !owners.is_empty() && owners != previous_owners {
            self.schedule_after(now, self.lags.garbage_collection, Task::CheckOwners(StoredKey::clone(&event.key)));
        }
        let pending = finalizers(&event.object);
        if is_deleting(&event.object) && (pending.contains(&FOREGROUND) || pending.contains(&ORPHAN)) {
            self.schedule_after(now, self.lags.garbage_collection, Task::FinishDeletion(StoredKey::clone(&event.key)));
        }
    }

    pub(crate) fn stored(&self, key: &StoredKey) -> Option<&std::sync::Arc<Value>> {
        self.get(&key.group, &key.plural, key.namespace.as_deref(), &key.name)
    }

    /// Writes an object on behalf of a controller, with its managed fields, and only if something changed.
    fn write_as(&mut self, now: Timestamp, who: &Authorship, manager: &str, key: &StoredKey, object: &Value) {
        let live = self.stored(key).cloned();
        let target = self.registry.preferred(&key.group, &key.plural);
        let unknown;
        let (shape, blank) = match &target {
            Some(target) => (&target.version.shape, &target.version.blank),
            None => {
                unknown = (Shape::object(), json!({}));
                (&unknown.0, &unknown.1)
            }
        };
        let (api_version, at) = (text(object, "/apiVersion"), stamp(now));
        let writer = Writer { manager, api_version, subresource: who.subresource, now: &at, blank };
        // Tracking cannot fail here: objects with malformed managedFields are rejected before they are stored.
        let tracked = track_update(shape, live.as_deref(), object, &writer).unwrap_or_else(|_| object.clone());
        if live.is_none_or(|live| *live != tracked) {
            self.commit(now, who, key.clone(), tracked);
        }
    }
}
