//! One run of one story: play it, end the faults, and see that everything converges and stays so.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sindri_model::wire::EventStatus;

use crate::engine::Arm;
use crate::ledger::Ledger;
use crate::oracle::Violation;
use crate::play::Play;
use crate::scenario::{Library, Scenario};
use crate::stage::{Options, SimulatedStage, Stage, Trouble};
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
    /// Decides everything.
    pub seed: u64,
    /// Whether faults are added.
    pub explored: bool,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// What did not hold.
    pub violation: Option<Violation>,
    /// Virtual time at the end.
    pub virtual_time: Duration,
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
        let (virtual_time, result) = outcome;
        let violation = match result {
            Ok(()) => None,
            Err(Trouble::Violation(violation)) => Some(violation),
            Err(other) => return Err(format!("{}: {other}", order.scenario.name)),
        };
        Ok(Report { violation, virtual_time, hash: trace.hash(), trace: trace.lines().to_vec() })
    })
}

fn play(order: &Order<'_>) -> (Duration, Result<(), Trouble>) {
    let ledger = Rc::new(RefCell::new(Ledger::default()));
    let options = Options {
        arm: order.arm,
        seed: order.seed,
        agents: order.scenario.fleet.agents.clone(),
        polling_interval: POLLING_INTERVAL,
        chaos: if order.explored { order.scenario.explore.clone() } else { Vec::new() },
    };
    let mut stage = match SimulatedStage::new(options, ledger.clone()) {
        Ok(stage) => stage,
        Err(trouble) => return (Duration::ZERO, Err(trouble)),
    };
    let result = acts(order, &mut stage, &ledger);
    (stage.now(), result)
}

fn acts(order: &Order<'_>, stage: &mut SimulatedStage, ledger: &Rc<RefCell<Ledger>>) -> Result<(), Trouble> {
    let patience = if order.explored { EXPLORED_PATIENCE } else { Duration::ZERO };
    let play = |stage: &mut SimulatedStage, act: &dyn Fn(&mut Play<'_>) -> Result<(), Trouble>| {
        let (library, scenario) = (order.library, order.scenario);
        act(&mut Play { stage, library, scenario, ledger: ledger.clone(), patience })
    };
    play(stage, &Play::steps)?;
    stage.end_faults()?;
    let mut end = stage.now() + order.scenario.converges_within.0;
    while let Some(missing) = {
        let mut missing = None;
        play(stage, &mut |play: &mut Play<'_>| play.unconverged()).map(|found| missing = found)?;
        missing
    } {
        if stage.now() >= end {
            return Err(Trouble::violation("converged-at-the-end", missing));
        }
        stage.advance(LOOK_EVERY)?;
        end = end.max(stage.now());
    }
    Ok(())
}
