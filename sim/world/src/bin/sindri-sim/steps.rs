//! Classes of the steps of a random world: faults, their ends, and operations.

use sindri_world::scenario::Step;

/// Returns the name of the fault that a step begins.
pub fn begins_fault(step: &Step) -> Option<&'static str> {
    Some(match step {
        Step::Kill(host) if host.starts_with("broker") => "kill broker",
        Step::Kill(host) if host.ends_with("-api") => "kill API server",
        Step::Kill(_) => "kill agent",
        Step::Pause(_) => "pause",
        Step::Partition(_) => "partition",
        Step::Latency(_) => "latency",
        Step::Fail(_) => "fail",
        Step::Stall | Step::StallFor(_) => "stall",
        Step::SnapshotEtcd(_) => "restore_etcd",
        Step::Backup => "restore",
        _ => return None,
    })
}

/// Returns true if a step ends the fault that another one began. The etcd of a cluster, or the database of the broker, is restored
/// at the end.
pub fn ends_fault(begun: &Step, step: &Step) -> bool {
    match (begun, step) {
        (Step::Kill(dead), Step::Restart(host)) => dead == host,
        (Step::Pause(paused), Step::Continue(host)) => paused == host,
        (Step::Partition(cut), Step::Repair(link)) => cut.between == link.between,
        (Step::Latency(slow), Step::Latency(link)) => slow.between == link.between,
        (Step::Fail(fault), Step::Heal(healed)) => fault.cluster == healed.cluster,
        (Step::Stall, Step::Resume) => true,
        (Step::StallFor(stalled), Step::ResumeFor(resumed)) => stalled.broker == resumed.broker,
        (Step::Backup, Step::Restore(_)) => true,
        (Step::SnapshotEtcd(copied), Step::RestoreEtcd(restored)) => copied.cluster == restored.cluster,
        _ => false,
    }
}

fn may_end_fault(step: &Step) -> bool {
    matches!(
        step,
        Step::Restart(_)
            | Step::Continue(_)
            | Step::Repair(_)
            | Step::Heal(_)
            | Step::Resume
            | Step::ResumeFor(_)
            | Step::RestoreEtcd(_)
            | Step::Restore(_)
    )
}

/// Returns true for a step of an operator or of a person.
pub fn is_operation(step: &Step) -> bool {
    begins_fault(step).is_none() && !may_end_fault(step) && !matches!(step, Step::Advance(_))
}
