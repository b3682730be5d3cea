//! What the controllers of the control plane will do later, and when.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::object::key::StoredKey;

/// One piece of work of a controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A new namespace gets its default service account and the cluster's certificate.
    PopulateNamespace(String),
    /// A namespace that is being deleted loses its content, and goes when it is empty.
    TerminateNamespace(String),
    /// The names of a definition are accepted, or not.
    EstablishCrd(String),
    /// The resource of an established definition is served from now on.
    ServeCrd(String),
    /// A definition that is being deleted loses its instances, and goes when there are none.
    FinalizeCrd(String),
    /// An owner is gone: its dependents follow.
    CollectDependents(String),
    /// An object says that it has owners: are they there?
    CheckOwners(StoredKey),
    /// An object waits for its dependents to go, or to be let go.
    FinishDeletion(StoredKey),
    /// A quota or a budget is counted again.
    Count(StoredKey),
    /// A claim or a volume goes when nothing uses it.
    Unprotect(StoredKey),
    /// One of the controllers of workloads looks at an object.
    Reconcile(Workload, StoredKey),
}

/// Who looks at an object that runs something, or helps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Endpoints,
    EndpointSlice,
    Scheduler,
    Kubelet,
}

impl Task {
    /// Whether the API server itself does it, and not one of the controllers beside it.
    pub(crate) fn belongs_to_api_server(&self) -> bool {
        match self {
            Self::EstablishCrd(_) | Self::ServeCrd(_) | Self::FinalizeCrd(_) => true,
            Self::PopulateNamespace(_)
            | Self::TerminateNamespace(_)
            | Self::CollectDependents(_)
            | Self::CheckOwners(_)
            | Self::FinishDeletion(_)
            | Self::Count(_)
            | Self::Unprotect(_)
            | Self::Reconcile(..) => false,
        }
    }
}

/// Tasks in the order of their time, and among equal times in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    tasks: BTreeMap<(Timestamp, u64), Task>,
    waiting: BTreeMap<Task, (Timestamp, u64)>,
    added: u64,
}

impl Schedule {
    /// Adds a task, unless the same task is waiting already. One that waits for later comes forward.
    pub(crate) fn add(&mut self, at: Timestamp, task: Task) {
        if let Some(place) = self.waiting.get(&task) {
            if place.0 <= at {
                return;
            }
            self.tasks.remove(place);
        }
        self.added += 1;
        self.waiting.insert(task.clone(), (at, self.added));
        self.tasks.insert((at, self.added), task);
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.tasks.keys().next().map(|(at, _)| *at)
    }

    /// The first task that is due.
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
