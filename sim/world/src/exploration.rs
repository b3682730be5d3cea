//! Exploration: faults that a seed adds to a scenario. Their kind, time and victim follow from the seed alone.
//!
//! Each fault is recorded in the trace. They end with the steps of the scenario; then everything must converge.
//!
//! The names of the random streams are part of the meaning of a seed: a new name would give every seed other faults.

use std::time::Duration;

use serde::Deserialize;
use sindri_apiserver::Fault;

use crate::rng::SeededRng;

/// Kind of fault that a scenario allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Agents are killed in the middle of a request to the API server or to the broker, and restarted.
    KillAgent,
    /// The broker is killed and restarted.
    KillBroker,
    /// API servers respond with 429, 500, 503 or 504.
    ApiErrors,
    /// Connections to API servers are cut before or after a request is carried out, and responses of the broker are
    /// lost on their way to the agent.
    DropResponse,
    /// The network between two hosts is cut for a while.
    Partition,
}

/// One of so many requests of an agent is rejected.
const ERROR_ONE_IN: u64 = 12;
/// One of so many gets no response.
const DROP_ONE_IN: u64 = 20;
/// One of so many is the last of the agent's process.
const KILL_ONE_IN: u64 = 25;
/// The most kills of one agent in a run, so that a run ends.
const KILLS_MAX: u32 = 4;

/// Faults of the requests to one API server.
#[derive(Clone, Debug)]
pub struct RequestFaults {
    kinds: Vec<FaultKind>,
    rng: SeededRng,
    kills: u32,
}

/// Faults of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFault {
    /// Fault of the API server.
    pub fault: Option<Fault>,
    /// True if the client is killed before the response reaches it.
    pub kill: bool,
}

impl RequestFaults {
    /// Creates the faults of the API server of a cluster.
    pub fn new(kinds: &[FaultKind], seed: u64, cluster: &str) -> Self {
        Self { kinds: kinds.to_vec(), rng: SeededRng::new(seed, &format!("chaos {cluster}")), kills: 0 }
    }

    /// Chooses the faults of the next request.
    pub fn choose(&mut self) -> RequestFault {
        let mut chosen = RequestFault::default();
        if self.has(FaultKind::ApiErrors) && self.rng.chance(1, ERROR_ONE_IN) {
            let status = [429, 500, 503, 504][(self.rng.next_u64() % 4) as usize];
            let retry_after_secs = (status == 429).then(|| self.rng.between(1, 5));
            chosen.fault = Some(Fault::Refuse { status, retry_after_secs });
        }
        if self.has(FaultKind::DropResponse) && self.rng.chance(1, DROP_ONE_IN) {
            chosen.fault = Some(if self.rng.chance(2, 3) { Fault::LoseResponse } else { Fault::CutBeforeCommit });
        }
        if self.has(FaultKind::KillAgent) && self.kills < KILLS_MAX && self.rng.chance(1, KILL_ONE_IN) {
            self.kills += 1;
            chosen.kill = true;
        }
        chosen
    }

    fn has(&self, kind: FaultKind) -> bool {
        self.kinds.contains(&kind)
    }
}

/// Fault of a response that is on its way from the broker to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFault {
    /// The agent is killed before the response arrives.
    KillAgent,
    /// The connection breaks, and the response is lost.
    LoseResponse,
}

/// Faults between the brokers and the agents.
#[derive(Clone, Debug)]
pub struct ResponseFaults {
    kinds: Vec<FaultKind>,
    rng: SeededRng,
    kills: u32,
}

impl ResponseFaults {
    /// Creates the faults of a fleet.
    pub fn new(kinds: &[FaultKind], seed: u64) -> Self {
        Self { kinds: kinds.to_vec(), rng: SeededRng::new(seed, "chaos broker"), kills: 0 }
    }

    /// Chooses the fault of the next response.
    pub fn choose(&mut self) -> Option<ResponseFault> {
        let (kill, lose) = (self.rng.chance(1, KILL_ONE_IN), self.rng.chance(1, DROP_ONE_IN));
        if kill && self.kills < KILLS_MAX && self.kinds.contains(&FaultKind::KillAgent) {
            self.kills += 1;
            return Some(ResponseFault::KillAgent);
        }
        (lose && self.kinds.contains(&FaultKind::DropResponse)).then_some(ResponseFault::LoseResponse)
    }
}

/// Schedule of the faults of hosts and links.
#[derive(Clone, Debug)]
pub struct HostFaults {
    kinds: Vec<FaultKind>,
    rng: SeededRng,
    next: Duration,
    agents: Vec<String>,
}

/// One fault of a host or a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// The broker is killed.
    KillBroker {
        /// Time until it is restarted.
        down: Duration,
    },
    /// Two hosts do not reach each other.
    Partition {
        /// The hosts.
        between: [String; 2],
        /// Time until the network is repaired.
        lasts: Duration,
    },
}

impl HostFaults {
    /// Creates the faults of a fleet.
    pub fn new(kinds: &[FaultKind], seed: u64, agents: &[String]) -> Self {
        let kinds = kinds.iter().copied().filter(|kind| matches!(kind, FaultKind::KillBroker | FaultKind::Partition));
        let mut faults = Self {
            kinds: kinds.collect(),
            rng: SeededRng::new(seed, "chaos hosts"),
            next: Duration::ZERO,
            agents: agents.to_vec(),
        };
        faults.schedule_next(Duration::ZERO);
        faults
    }

    fn schedule_next(&mut self, now: Duration) {
        self.next = now + Duration::from_millis(self.rng.between(200, 60_000));
    }

    /// Returns the time of the next fault; `None` if the scenario allows no fault of hosts or links.
    pub fn next_due(&self) -> Option<Duration> {
        (!self.kinds.is_empty()).then_some(self.next)
    }

    /// Chooses the fault that is due at `now`, and schedules the next one.
    pub fn choose(&mut self, now: Duration) -> HostFault {
        self.schedule_next(now);
        let kind = self.kinds[(self.rng.next_u64() % self.kinds.len() as u64) as usize];
        let lasts = Duration::from_millis(self.rng.between(500, 90_000));
        if kind == FaultKind::KillBroker {
            return HostFault::KillBroker { down: lasts / 3 };
        }
        let agent = self.agents[(self.rng.next_u64() % self.agents.len() as u64) as usize].clone();
        let other = if self.rng.chance(1, 2) { "broker".to_owned() } else { format!("{agent}-api") };
        HostFault::Partition { between: [agent, other], lasts }
    }
}
