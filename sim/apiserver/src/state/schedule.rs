//! Scheduled tasks of the controllers.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::object::key::StoredKey;

/// Task of a controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// Creates the default ServiceAccount and the root CA ConfigMap of a namespace.
    PopulateNamespace(String),
    /// Deletes the content of a namespace that is being deleted, and then the namespace.
    TerminateNamespace(String),
    /// Accepts or rejects the names of a CRD.
    EstablishCrd(String),
    /// Serves the resource of an established CRD.
    ServeCrd(String),
    /// Deletes the custom resources of a CRD that is being deleted, and then the CRD.
    FinalizeCrd(String),
    /// Checks the dependents of a removed owner.
    CollectDependents(String),
    /// Checks that the owners of an object exist.
    CheckOwners(StoredKey),
    /// Continues a foreground or orphaning deletion.
    FinishDeletion(StoredKey),
    /// Updates the status of a quota or a pod disruption budget.
    Count(StoredKey),
    /// Updates the rules of aggregated ClusterRoles.
    AggregateRoles,
    /// Signs an approved certificate signing request.
    SignCertificate(String),
    /// Removes the protection finalizer of a claim or a volume that is not in use.
    Unprotect(StoredKey),
    /// Reconciles an object by a workload controller.
    Reconcile(Workload, StoredKey),
}

/// Controllers of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Endpoints,
    EndpointSlice,
    Scheduler,
    Kubelet,
    /// The readiness gates and the ephemeral containers of a running pod.
    PodReadiness,
    /// A pod whose node was removed.
    PodCleanup,
}

impl Task {
    /// True for tasks of the API server itself, false for those of the controller manager.
    pub(crate) fn belongs_to_api_server(&self) -> bool {
        match self {
            Self::EstablishCrd(_) | Self::ServeCrd(_) | Self::FinalizeCrd(_) => true,
            Self::PopulateNamespace(_)
            | Self::TerminateNamespace(_)
            | Self::CollectDependents(_)
            | Self::CheckOwners(_)
            | Self::FinishDeletion(_)
            | Self::Count(_)
            | Self::AggregateRoles
            | Self::SignCertificate(_)
            | Self::Unprotect(_)
            | Self::Reconcile(..) => false,
        }
    }
}

/// Tasks in the order of their times, and of their addition for equal times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    tasks: BTreeMap<(Timestamp, u64), Task>,
    waiting: BTreeMap<Task, (Timestamp, u64)>,
    added: u64,
}

impl Schedule {
    /// Adds a task. A task that is scheduled already keeps the earlier of the two times.
    pub(crate) fn add(&mut self, time: Timestamp, task: Task) {
        if let Some(place) = self.waiting.get(&task) {
            if place.0 <= time {
                return;
            }
            self.tasks.remove(place);
        }
        self.added += 1;
        self.waiting.insert(task.clone(), (time, self.added));
        self.tasks.insert((time, self.added), task);
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.tasks.keys().next().map(|(time, _)| *time)
    }

    /// Removes a task that is due before this time. Returns true if there was one.
    pub(crate) fn take_before(&mut self, end: Timestamp, task: &Task) -> bool {
        let Some(place) = self.waiting.get(task).filter(|place| place.0 < end).copied() else { return false };
        self.waiting.remove(task);
        self.tasks.remove(&place).is_some()
    }

    /// Removes and returns the first task that is due.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Option<Task> {
        let entry = self.tasks.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let task = entry.remove();
        self.waiting.remove(&task);
        Some(task)
    }
}
