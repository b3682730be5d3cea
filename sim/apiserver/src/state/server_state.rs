//! The parts of one server, which verbs and controllers read and write.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::certificate_signer::CertificateSigner;
use super::delays::ControllerDelays;
use super::schedule::{Schedule, Task};
use super::watches::Watches;
use super::workloads::Workloads;
use crate::auth::authenticator::Authenticator;
use crate::object::fields::add_duration;
use crate::registry::served::Registry;
use crate::storage::ids::Ids;
use crate::storage::journal::Journal;
use crate::storage::store::Store;
use crate::strategy::service_allocator::ServiceAllocator;

/// State of one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerState {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) schedule: Schedule,
    pub(crate) ids: Ids,
    pub(crate) delays: ControllerDelays,
    pub(crate) watches: Watches,
    pub(crate) journal: Journal,
    pub(crate) allocator: ServiceAllocator,
    /// True if the controllers of a whole control plane run, and not only those of the API server itself.
    pub(crate) runs_controllers: bool,
    /// True if admission requires a service account for each pod and mounts its token.
    pub(crate) requires_service_accounts: bool,
    /// The workload controllers.
    pub(crate) workloads: Workloads,
    pub(crate) authenticator: Authenticator,
    /// Signer of the certificates of clients; without it, approved requests wait.
    pub(crate) signer: Option<Arc<dyn CertificateSigner>>,
}

impl ServerState {
    /// Creates an empty server, whose identities come from a generator with this seed.
    pub(crate) fn new(seed: u64, delays: ControllerDelays) -> Self {
        Self {
            store: Store::default(),
            registry: Registry::new(),
            schedule: Schedule::default(),
            ids: Ids::new(seed),
            delays,
            watches: Watches::default(),
            journal: Journal::new(),
            allocator: ServiceAllocator::default(),
            runs_controllers: true,
            requires_service_accounts: true,
            workloads: Workloads::default(),
            authenticator: Authenticator::default(),
            signer: None,
        }
    }

    /// Schedules a task, unless it belongs to a controller that this server does not run.
    pub(crate) fn schedule_after(&mut self, now: Timestamp, delay: SignedDuration, task: Task) {
        if !self.runs_controllers && !task.belongs_to_api_server() {
            return;
        }
        self.schedule.add(add_duration(now, delay), task);
    }
}
