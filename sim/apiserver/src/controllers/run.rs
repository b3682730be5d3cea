//! Runs the tasks of the schedule.

use jiff::Timestamp;

use super::certificate_signing::sign_certificate;
use super::counting::update_counts;
use super::crd::{establish_crd, finalize_crd};
use super::cron_job::reconcile_cron_job;
use super::daemon_set::reconcile_daemon_set;
use super::deployment::reconcile_deployment;
use super::endpoints::{reconcile_endpoint_slices, reconcile_endpoints};
use super::garbage_collector::{check_owners, collect_dependents, finish_deletion};
use super::job::reconcile_job;
use super::kubelet::{run_pod, update_readiness};
use super::namespace::terminate_namespace;
use super::pod_cleanup::remove_stranded_pod;
use super::replica_set::{reconcile_replica_set, reconcile_replication_controller};
use super::role_aggregation::aggregate_roles;
use super::scheduler::schedule_pod;
use super::stateful_set::reconcile_stateful_set;
use super::volume_protection::unprotect;
use crate::object::key::StoredKey;
use crate::state::crd_serving::serve_crd;
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;
use crate::writes::namespace_defaults::create_default_objects;

/// Executes one due task.
pub(crate) fn run_task(state: &mut ServerState, now: Timestamp, task: Task) {
    match task {
        Task::PopulateNamespace(name) => create_default_objects(state, now, &name),
        Task::TerminateNamespace(name) => terminate_namespace(state, now, &name),
        Task::EstablishCrd(name) => establish_crd(state, now, &name),
        Task::ServeCrd(name) => serve_crd(state, &name),
        Task::FinalizeCrd(name) => finalize_crd(state, now, &name),
        Task::CollectDependents(uid) => collect_dependents(state, now, &uid),
        Task::CheckOwners(key) => check_owners(state, now, &key),
        Task::FinishDeletion(key) => finish_deletion(state, now, &key),
        Task::Count(key) => update_counts(state, now, &key),
        Task::AggregateRoles => aggregate_roles(state, now),
        Task::SignCertificate(name) => sign_certificate(state, now, &name),
        Task::Unprotect(key) => unprotect(state, now, &key),
        Task::Reconcile(workload, key) => reconcile(state, now, workload, &key),
    }
}

/// Runs one controller for one object.
pub(crate) fn reconcile(state: &mut ServerState, now: Timestamp, workload: Workload, key: &StoredKey) {
    match workload {
        Workload::Deployment => reconcile_deployment(state, now, key),
        Workload::ReplicaSet => reconcile_replica_set(state, now, key),
        Workload::ReplicationController => reconcile_replication_controller(state, now, key),
        Workload::StatefulSet => reconcile_stateful_set(state, now, key),
        Workload::DaemonSet => reconcile_daemon_set(state, now, key),
        Workload::Job => reconcile_job(state, now, key),
        Workload::CronJob => reconcile_cron_job(state, now, key),
        Workload::Endpoints => reconcile_endpoints(state, now, key),
        Workload::EndpointSlice => reconcile_endpoint_slices(state, now, key),
        Workload::Scheduler => schedule_pod(state, now, key),
        Workload::Kubelet => run_pod(state, now, key),
        Workload::PodReadiness => update_readiness(state, now, key),
        Workload::PodCleanup => remove_stranded_pod(state, now, key),
    }
}
