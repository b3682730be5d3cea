//! Faults of a random world, as steps. A world has a random subset of the kinds of faults.

use std::time::Duration;

use super::pools::{choose, choose_weighted};
use crate::rng::SeededRng;
use crate::scenario::{
    BrokerRef, ClusterFault, ClusterRef, Fleet, Latency, Link, Span, Step, broker_name, replica_name,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultKind {
    KillAgent,
    KillBroker,
    KillApiServer,
    PauseAgent,
    PauseBroker,
    Partition,
    Latency,
    Refuse,
    DenyResource,
    LoseResponse,
    Cut,
    Stall,
    RestoreEtcd,
}

const KINDS: [FaultKind; 13] = [
    FaultKind::KillAgent,
    FaultKind::KillBroker,
    FaultKind::KillApiServer,
    FaultKind::PauseAgent,
    FaultKind::PauseBroker,
    FaultKind::Partition,
    FaultKind::Latency,
    FaultKind::Refuse,
    FaultKind::DenyResource,
    FaultKind::LoseResponse,
    FaultKind::Cut,
    FaultKind::Stall,
    FaultKind::RestoreEtcd,
];

/// Statuses with which an API server refuses a request, with their weights.
const STATUSES: [(u64, u16); 9] =
    [(6, 429), (6, 503), (4, 500), (3, 504), (2, 409), (2, 403), (1, 404), (1, 410), (1, 401)];

/// Words of the requests that fail.
const REQUESTS: [&str; 14] = [
    "",
    "GET",
    "GET watch",
    "PATCH",
    "PATCH dry-run",
    "PATCH !dry-run",
    "POST",
    "PUT",
    "DELETE",
    "configmaps/inventory",
    "leases",
    "namespaces !configmaps",
    "/apis",
    "secrets",
];

/// Words of the requests for one resource or API group, which an API server can deny for a while.
const RESOURCES: [&str; 6] =
    ["secrets", "configmaps !inventory", "services", "/apis/apps", "/apis/example.com", "/apis/rbac"];
/// Statuses with which it denies them: no permission, or a dead API group.
const DENIALS: [(u64, u16); 3] = [(2, 403), (2, 503), (1, 404)];

/// Faults of one world.
pub struct RandomFaults {
    kinds: Vec<FaultKind>,
}

impl RandomFaults {
    /// Switches on a random subset of the kinds.
    pub fn choose(rng: &mut SeededRng) -> Self {
        Self { kinds: KINDS.into_iter().filter(|_| rng.chance(1, 3)).collect() }
    }

    /// Returns true if the world has faults.
    pub fn is_some(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Makes a fault, and the step that ends it after a while. The end of the world ends every fault too.
    pub fn make(&self, rng: &mut SeededRng, fleet: &Fleet) -> (Vec<Step>, Option<Step>) {
        let cluster = choose(rng, &fleet.agents).clone();
        let process = replica_name(&cluster, rng.between(0, fleet.replicas as u64 - 1) as usize);
        let broker = broker_name(rng.between(0, fleet.brokers as u64 - 1) as usize);
        let api = format!("{cluster}-api");
        let kill = |host: String| (vec![Step::Kill(host.clone())], Some(Step::Restart(host)));
        let pause = |host: String| (vec![Step::Pause(host.clone())], Some(Step::Continue(host)));
        let other = if rng.chance(1, 2) { broker.clone() } else { api.clone() };
        match *choose(rng, &self.kinds) {
            FaultKind::KillAgent => kill(process),
            FaultKind::KillBroker => kill(broker),
            FaultKind::KillApiServer => kill(api),
            FaultKind::PauseAgent => pause(process),
            FaultKind::PauseBroker => pause(broker),
            FaultKind::Partition => {
                let link = Link { between: [process, other] };
                (vec![Step::Partition(link.clone())], Some(Step::Repair(link)))
            }
            FaultKind::Latency => {
                let span = |millis| Span(Duration::from_millis(millis));
                let slow = rng.between(100, 3_000);
                let latency = |min, max| {
                    Step::Latency(Latency { between: [process.clone(), other.clone()], min: span(min), max: span(max) })
                };
                (vec![latency(slow / 10, slow)], Some(latency(1, 2)))
            }
            FaultKind::Refuse => {
                let status = choose_weighted(rng, &STATUSES);
                let retry_after = (status == 429).then(|| rng.between(1, 5));
                fail(rng, cluster, |fault| (fault.status, fault.retry_after) = (Some(status), retry_after))
            }
            FaultKind::DenyResource => {
                let fault = ClusterFault {
                    cluster,
                    requests: (*choose(rng, &RESOURCES)).to_owned(),
                    status: Some(choose_weighted(rng, &DENIALS)),
                    ..ClusterFault::default()
                };
                until_healed(fault)
            }
            FaultKind::LoseResponse => fail(rng, cluster, |fault| fault.lose_response = true),
            FaultKind::Cut => fail(rng, cluster, |fault| fault.cut = true),
            FaultKind::Stall if fleet.brokers == 1 => (vec![Step::Stall], Some(Step::Resume)),
            FaultKind::Stall => {
                let broker = BrokerRef { broker };
                (vec![Step::StallFor(broker.clone())], Some(Step::ResumeFor(broker)))
            }
            FaultKind::RestoreEtcd => {
                let cluster = ClusterRef { cluster };
                (vec![Step::SnapshotEtcd(cluster.clone())], Some(Step::RestoreEtcd(cluster)))
            }
        }
    }
}

fn fail(rng: &mut SeededRng, cluster: String, set: impl FnOnce(&mut ClusterFault)) -> (Vec<Step>, Option<Step>) {
    let mut fault = ClusterFault {
        cluster,
        requests: (*choose(rng, &REQUESTS)).to_owned(),
        times: rng.chance(2, 3).then(|| rng.between(1, 4) as u32),
        ..ClusterFault::default()
    };
    set(&mut fault);
    until_healed(fault)
}

fn until_healed(fault: ClusterFault) -> (Vec<Step>, Option<Step>) {
    let heal = Step::Heal(ClusterRef { cluster: fault.cluster.clone() });
    (vec![Step::Fail(fault)], Some(heal))
}
