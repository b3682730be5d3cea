//! Faults that are added to a story when it is explored: which, when and where follows from the seed alone.
//!
//! Each is recorded in the trace as what it is. They end when the story does; then everything must converge.

use std::time::Duration;

use serde::Deserialize;
use sindri_apiserver::Fault;

use crate::dice::Dice;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChaosKind {
    /// Agents are killed in the middle of a request to the API server or to the broker, and start again.
    KillAgent,
    /// The broker is killed and starts again.
    KillBroker,
    /// API servers answer 429, 500, 503 or 504.
    ApiErrors,
    /// API servers carry a request out, or not, and do not answer; answers of the broker are lost on the way.
    DropResponse,
    /// The network is cut for a while.
    Partition,
}

/// One of so many requests of an agent is refused.
const ERROR_ONE_IN: u64 = 12;
/// One of so many is not answered.
const DROP_ONE_IN: u64 = 20;
/// One of so many is the last of the agent's process.
const KILL_ONE_IN: u64 = 25;
/// The most kills of one agent in a run, so that a run ends.
const KILLS_MAX: u32 = 4;

/// The faults of one API server.
#[derive(Clone, Debug)]
pub struct GateChaos {
    kinds: Vec<ChaosKind>,
    dice: Dice,
    kills: u32,
}

/// What happens to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateChoice {
    /// What the server does.
    pub fault: Option<Fault>,
    /// Whether the agent dies before the answer reaches it.
    pub kill: bool,
}

impl GateChaos {
    /// The faults of the API server of a cluster.
    pub fn new(kinds: &[ChaosKind], seed: u64, cluster: &str) -> Self {
        Self { kinds: kinds.to_vec(), dice: Dice::new(seed, &format!("chaos {cluster}")), kills: 0 }
    }

    /// Decides about the next request of the agent.
    pub fn choose(&mut self) -> GateChoice {
        let mut choice = GateChoice::default();
        if self.has(ChaosKind::ApiErrors) && self.dice.chance(1, ERROR_ONE_IN) {
            let status = [429, 500, 503, 504][(self.dice.roll() % 4) as usize];
            let retry_after_secs = (status == 429).then(|| self.dice.between(1, 5));
            choice.fault = Some(Fault::Refuse { status, retry_after_secs });
        }
        if self.has(ChaosKind::DropResponse) && self.dice.chance(1, DROP_ONE_IN) {
            choice.fault = Some(if self.dice.chance(2, 3) { Fault::LoseAnswer } else { Fault::CutBeforeCommit });
        }
        if self.has(ChaosKind::KillAgent) && self.kills < KILLS_MAX && self.dice.chance(1, KILL_ONE_IN) {
            self.kills += 1;
            choice.kill = true;
        }
        choice
    }

    fn has(&self, kind: ChaosKind) -> bool {
        self.kinds.contains(&kind)
    }
}

/// What happens when the broker has answered an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFault {
    /// The agent dies before the answer reaches it.
    Kill,
    /// The answer is lost.
    Lose,
}

/// The faults between the broker and its agents.
#[derive(Clone, Debug)]
pub struct BrokerChaos {
    kinds: Vec<ChaosKind>,
    dice: Dice,
    kills: u32,
}

impl BrokerChaos {
    /// The faults of a fleet.
    pub fn new(kinds: &[ChaosKind], seed: u64) -> Self {
        Self { kinds: kinds.to_vec(), dice: Dice::new(seed, "chaos broker"), kills: 0 }
    }

    /// Decides about the next answer, and about which of so many agents.
    pub fn choose(&mut self, agents: usize) -> Option<(AnswerFault, usize)> {
        let (kill, lose) = (self.dice.chance(1, KILL_ONE_IN), self.dice.chance(1, DROP_ONE_IN));
        let agent = (self.dice.roll() % agents as u64) as usize;
        if kill && self.kills < KILLS_MAX && self.kinds.contains(&ChaosKind::KillAgent) {
            self.kills += 1;
            return Some((AnswerFault::Kill, agent));
        }
        (lose && self.kinds.contains(&ChaosKind::DropResponse)).then_some((AnswerFault::Lose, agent))
    }
}

/// What happens to hosts and links, and when.
#[derive(Clone, Debug)]
pub struct HostChaos {
    kinds: Vec<ChaosKind>,
    dice: Dice,
    next: Duration,
    agents: Vec<String>,
}

/// One fault of a host or a link, with the time after which it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// The broker dies.
    KillBroker {
        /// And starts again after this.
        down: Duration,
    },
    /// Two hosts do not reach each other.
    Partition {
        /// The hosts.
        between: [String; 2],
        /// For this long.
        lasts: Duration,
    },
}

impl HostChaos {
    /// The faults of a fleet.
    pub fn new(kinds: &[ChaosKind], seed: u64, agents: &[String]) -> Self {
        let kinds = kinds.iter().copied().filter(|kind| matches!(kind, ChaosKind::KillBroker | ChaosKind::Partition));
        let mut chaos = Self {
            kinds: kinds.collect(),
            dice: Dice::new(seed, "chaos hosts"),
            next: Duration::ZERO,
            agents: agents.to_vec(),
        };
        chaos.plan_next(Duration::ZERO);
        chaos
    }

    fn plan_next(&mut self, now: Duration) {
        self.next = now + Duration::from_millis(self.dice.between(200, 60_000));
    }

    /// When the next fault is due; `None` if there are none of this kind.
    pub fn due(&self) -> Option<Duration> {
        (!self.kinds.is_empty()).then_some(self.next)
    }

    /// The fault that is due at `now`.
    pub fn strike(&mut self, now: Duration) -> HostFault {
        self.plan_next(now);
        let kind = self.kinds[(self.dice.roll() % self.kinds.len() as u64) as usize];
        let lasts = Duration::from_millis(self.dice.between(500, 90_000));
        if kind == ChaosKind::KillBroker {
            return HostFault::KillBroker { down: lasts / 3 };
        }
        let agent = self.agents[(self.dice.roll() % self.agents.len() as u64) as usize].clone();
        let other = if self.dice.chance(1, 2) { "broker".to_owned() } else { format!("{agent}-api") };
        HostFault::Partition { between: [agent, other], lasts }
    }
}
