//! Runs work only while this process may be the leader.

use std::future::Future;

use sindri_model::Clock;
use tokio_util::sync::CancellationToken;

use super::lease::{LeaderLease, ProcessName};
use crate::cluster::Cluster;
use crate::cluster::write_gate::WriteGate;
use crate::telemetry::readiness::Readiness;

/// Runs `work` until it ends or shutdown, and holds the Lease meanwhile. While another process is the leader, `work` is
/// dropped, and started again once the Lease is free; also if the Lease was lost and is free again when that is noticed. Writes of `cluster` wait until the Lease is held.
pub async fn run_as_leader<F: Future<Output = ()>>(
    cluster: &Cluster,
    clock: &Clock,
    process: ProcessName<'_>,
    readiness: &Readiness,
    work: impl Fn() -> F,
) {
    let lease_cluster = cluster.independent();
    let lease = LeaderLease { cluster: &lease_cluster, clock, process, readiness };
    let gate = cluster.write_gate();
    tokio::select! {
        biased; // the first branch never ends; the order only decides which starts first
        never = lease.run(&gate) => match never {},
        () = run_unless_other_leader(cluster.shutdown(), &gate, work) => {}
    }
    lease.release().await;
}

async fn run_unless_other_leader<F: Future<Output = ()>>(
    shutdown: &CancellationToken,
    gate: &WriteGate,
    work: impl Fn() -> F,
) {
    while !shutdown.is_cancelled() {
        tokio::select! {
            biased; // shutdown first: no work begins after it
            () = shutdown.cancelled() => return,
            () = gate.wait_until_no_other_leader() => {}
        }
        let term = gate.term();
        tokio::select! {
            biased; // loss of the Lease first: nothing more is done then
            () = gate.wait_for_end_of(term) => {}
            () = work() => return,
        }
    }
}
