//! One run of one story: play it, end the faults, and see that everything converges and stays so.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::engine::Arm;
use crate::ledger::Ledger;
use crate::oracle::{TakenBack, Violation};
use crate::play::Play;
use crate::scenario::{Library, Scenario};
use crate::stage::{Options, SimulatedStage, Stage, Trouble, Writes};
use crate::{isolate, trace};

/// The polling interval of simulated agents: the default of production.
pub const POLLING_INTERVAL: Duration = sindri_agent::Settings::DEFAULT_POLLING_INTERVAL;
/// What faults may add to every wait of a story that is explored: retries last five minutes, then comes a poll.
const EXPLORED_PATIENCE: Duration = Duration::from_secs(40 * 60);
/// How often convergence is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Polling intervals without a write after convergence.
const IDLE_POLLS: u32 = 3;

/// What to run.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The story.
    pub scenario: &'a Scenario,
    /// Where bundles come from.
    pub library: &'a Library,
    /// Which arm.
    pub arm: Arm,
    /// Decides everything. Seed 0 is the story as it is written; every other seed adds faults.
    pub seed: u64,
    /// An agent dies at this event of the agents, counted from 1, and is started again.
    pub kill_at: Option<u64>,
}

impl Order<'_> {
    fn is_explored(&self) -> bool {
        self.seed != 0 || self.kill_at.is_some()
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// What did not hold.
    pub violation: Option<Violation>,
    /// Virtual time at the end.
    pub virtual_time: Duration,
    /// How often something happened to an agent: a packet came, or a timer ran out.
    pub events: u64,
    /// The hash over the trace.
    pub hash: String,
    /// The trace.
    pub trace: Vec<String>,
}

/// Runs a story on a thread of its own.
pub fn run(order: &Order<'_>) -> Result<Report, String> {
    isolate(order.seed, || {
        let outcome = play(order);
        let trace = trace::take();
        let (virtual_time, events, result) = outcome;
        let violation = match result {
            Ok(()) => None,
            Err(Trouble::Violation(violation)) => Some(violation),
            Err(other) => return Err(format!("{}, {other}", order.scenario.name)),
        };
        Ok(Report { violation, virtual_time, events, hash: trace.hash(), trace: trace.lines().to_vec() })
    })
}

fn play(order: &Order<'_>) -> (Duration, u64, Result<(), Trouble>) {
    let ledger = Rc::new(RefCell::new(Ledger::default()));
    let options = Options {
        arm: order.arm,
        seed: order.seed,
        agents: order.scenario.fleet.agents.clone(),
        replicas: order.scenario.fleet.replicas,
        namespace: order.scenario.fleet.namespace.clone(),
        brokers: order.scenario.fleet.brokers,
        clocks_ahead: order.scenario.fleet.clocks_ahead.0,
        polling_interval: POLLING_INTERVAL,
        kill_at: order.kill_at,
        chaos: if order.is_explored() { order.scenario.explore.clone() } else { Vec::new() },
    };
    let mut stage = match SimulatedStage::new(options, ledger.clone()) {
        Ok(stage) => stage,
        Err(trouble) => return (Duration::ZERO, 0, Err(trouble)),
    };
    let result = acts(order, &mut stage, &ledger);
    (stage.now(), stage.events(), result)
}

fn acts(order: &Order<'_>, stage: &mut SimulatedStage, ledger: &Rc<RefCell<Ledger>>) -> Result<(), Trouble> {
    let patience = if order.is_explored() { EXPLORED_PATIENCE } else { Duration::ZERO };
    let (library, scenario) = (order.library, order.scenario);
    let play = |stage: &mut SimulatedStage, act: Act| {
        let mut play = Play::new(stage, library, scenario, ledger.clone(), patience);
        match act {
            Act::Steps => play.steps().map(|()| None),
            Act::Converged => play.unconverged(),
            Act::Rollbacks(taken_back) => play.judge_rollbacks(&taken_back).map(|()| None),
            Act::Expectations => play.expectations(!order.is_explored()).map(|()| None),
        }
    };
    play(stage, Act::Steps)?;
    stage.end_faults()?;
    let end = stage.now() + scenario.converges_within.0;
    while let Some(missing) = play(stage, Act::Converged)? {
        if stage.now() >= end {
            return Err(Trouble::violation("converged-at-the-end", missing));
        }
        stage.advance(LOOK_EVERY)?;
    }
    for agent in &scenario.fleet.agents {
        let taken_back = stage.inspect(agent, |watchman, _| watchman.taken_back.clone()).unwrap_or_default();
        play(stage, Act::Rollbacks(taken_back))?;
        no_leak(stage, agent, ledger)?;
    }
    play(stage, Act::Expectations)?;
    // A stack that cannot be applied is tried again at every poll, and its namespaces with it.
    if !scenario.failing.is_empty() {
        return Ok(());
    }
    // A process that was killed may have looked converged from outside and still has to note what it did.
    let unfinished = if order.is_explored() { scenario.converges_within.0 } else { Duration::ZERO };
    comes_to_rest(stage, &scenario.fleet.agents, unfinished)
}

enum Act {
    Steps,
    Converged,
    Rollbacks(Vec<TakenBack>),
    Expectations,
}

fn no_leak(stage: &SimulatedStage, agent: &str, ledger: &Rc<RefCell<Ledger>>) -> Result<(), Trouble> {
    let leaks = stage.inspect(agent, |watchman, machine| {
        watchman.leaks(machine.objects().map(|(key, object)| (key, &**object)), &ledger.borrow())
    });
    match leaks.unwrap_or_default().first() {
        None => Ok(()),
        Some(key) => Err(Trouble::violation("no-leak", format!("{key} is left in {agent} and nobody wants it"))),
    }
}

/// After at most `unfinished` time there are so many polls in which no agent writes.
fn comes_to_rest(stage: &mut SimulatedStage, agents: &[String], unfinished: Duration) -> Result<(), Trouble> {
    let end = stage.now() + unfinished;
    loop {
        let before = writes(stage, agents)?;
        stage.advance(POLLING_INTERVAL * IDLE_POLLS)?;
        let after = writes(stage, agents)?;
        let mut grown = agents.iter().zip(before.iter().zip(&after));
        let restless = grown.find_map(|(agent, (before, after))| Some((agent, after.since(before)?)));
        let Some((agent, more)) = restless else { return Ok(()) };
        if stage.now() >= end {
            let message = format!("the agent of {agent} wrote after everything had converged: {more}");
            return Err(Trouble::violation("an-idle-pass-writes-nothing", message));
        }
    }
}

fn writes(stage: &mut SimulatedStage, agents: &[String]) -> Result<Vec<Writes>, Trouble> {
    agents.iter().map(|agent| stage.writes(agent)).collect()
}
