//! One run of one scenario: carries out the steps, ends the faults, and checks that everything converges and that the
//! agents come to rest.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use crate::engine::EngineKind;
use crate::environment::{Environment, Options, SimulatedWorld, StepError, WriteCounts};
use crate::expected_state::ExpectedState;
use crate::host_panic::message_of;
use crate::interpreter::Interpreter;
use crate::isolate::isolate;
use crate::oracle::{Violation, judge_successes, judge_texts};
use crate::scenario::{Library, Scenario, Step};
use crate::trace::{self, Trace};
use crate::worlds::SECRET_CANARY;

/// Polling interval of simulated agents: the default of production.
pub const POLLING_INTERVAL: Duration = sindri_agent::Settings::DEFAULT_POLLING_INTERVAL;
/// Time that the faults of an exploration may add to every wait: retries last five minutes, then comes a poll, and
/// several faults may follow each other.
const EXPLORATION_EXTRA_WAIT: Duration = Duration::from_secs(40 * 60);
/// Interval at which convergence is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which the convergence of a random world is checked, and people clean up.
const WORLD_CHECK_INTERVAL: Duration = Duration::from_secs(20);
/// Polling intervals without a write after convergence.
const IDLE_POLLS: u32 = 3;
/// The same after an agent has written in that time.
const IDLE_POLLS_LATE: u32 = 12;

/// A run to make.
#[derive(Clone, Debug)]
pub struct RunRequest<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Source of its bundles.
    pub library: &'a Library,
    /// The engine.
    pub engine: EngineKind,
    /// Seed, which decides everything. Seed 0 is the scenario as it is written; every other seed adds faults.
    pub seed: u64,
    /// Number of the event of the agents, counted from 1, at which an agent is killed and restarted.
    pub kill_at: Option<u64>,
}

impl RunRequest<'_> {
    fn is_explored(&self) -> bool {
        self.seed != 0 || self.kill_at.is_some()
    }

    fn extra_wait(&self) -> Duration {
        if self.is_explored() { EXPLORATION_EXTRA_WAIT } else { Duration::ZERO }
    }

    fn options(&self) -> Options {
        let faults = if self.is_explored() { self.scenario.explore.clone() } else { Vec::new() };
        let options = Options::new(self.engine, self.seed, self.scenario.fleet.clone(), POLLING_INTERVAL);
        Options { kill_at: self.kill_at, faults, ..options }
    }
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// The property that did not hold, if any.
    pub violation: Option<Violation>,
    /// Virtual time at the end.
    pub virtual_time: Duration,
    /// Number of events of the agents: an agent received a packet, or a timer fired.
    pub events: u64,
    /// Hash over the trace.
    pub hash: String,
    /// The trace.
    pub trace: Vec<String>,
}

/// Runs a scenario on a thread of its own. An error means that the scenario cannot be carried out.
///
/// A panic in a host, or in the simulation itself, is a violation.
pub fn run(request: &RunRequest<'_>) -> Result<RunReport, String> {
    let ran = catch_unwind(AssertUnwindSafe(|| isolate(request.seed, || run_here(request))));
    ran.unwrap_or_else(|payload| {
        let message = format!("the simulation panicked: {}", message_of(&*payload));
        Ok(RunReport { violation: Some(Violation { oracle: "no-panic", message }), ..RunReport::default() })
    })
}

fn run_here(request: &RunRequest<'_>) -> Result<RunReport, String> {
    let Simulated { virtual_time, events, result, trace } = simulate(request);
    let logged = trace.lines().iter().map(String::as_str).filter(|line| line.contains(" > "));
    let violation = match result {
        Ok(()) => judge_texts(SECRET_CANARY, logged).err(),
        Err(StepError::Violation(violation)) => Some(violation),
        Err(other) => return Err(format!("{}, {other}", request.scenario.name)),
    };
    Ok(RunReport { violation, virtual_time, events, hash: trace.hash(), trace: trace.lines().to_vec() })
}

/// Result of a simulation.
struct Simulated {
    virtual_time: Duration,
    events: u64,
    result: Result<(), StepError>,
    trace: Trace,
}

fn simulate(request: &RunRequest<'_>) -> Simulated {
    let expected = Rc::new(RefCell::new(ExpectedState::default()));
    match SimulatedWorld::new(request.options(), expected.clone()) {
        Ok(world) => {
            let mut run = Run { request, world, expected };
            let result = run.carry_out();
            // Log lines of the end of the world are not part of the run.
            Simulated { virtual_time: run.world.now(), events: run.world.events(), result, trace: trace::take() }
        }
        Err(error) => Simulated { virtual_time: Duration::ZERO, events: 0, result: Err(error), trace: trace::take() },
    }
}

/// A run under way.
struct Run<'a> {
    request: &'a RunRequest<'a>,
    world: SimulatedWorld,
    expected: Rc<RefCell<ExpectedState>>,
}

impl Run<'_> {
    fn interpreter(&mut self) -> Interpreter<'_> {
        let RunRequest { library, scenario, .. } = self.request;
        Interpreter::new(&mut self.world, library, scenario, self.expected.clone(), self.request.extra_wait())
    }

    fn carry_out(&mut self) -> Result<(), StepError> {
        let scenario = self.request.scenario;
        self.interpreter().run_steps()?;
        self.world.end_faults()?;
        if scenario.world {
            self.interpreter().heal_world()?;
        } else if let (false, Some(fault)) = (self.request.is_explored(), self.world.find_unmatched_fault()) {
            return Err(StepError::Failed(fault));
        }
        self.wait_for_convergence()?;
        let mut is_any_failing = false;
        for agent in &scenario.fleet.agents {
            let failing = self.interpreter().list_failing(agent)?;
            is_any_failing |= !failing.is_empty();
            let rollbacks = self.world.inspect(agent, |oracle, _| oracle.rollbacks.clone()).unwrap_or_default();
            self.interpreter().judge_rollbacks(&rollbacks)?;
            let suspects = self.world.inspect(agent, |oracle, _| oracle.suspects.clone()).unwrap_or_default();
            self.interpreter().judge_suspects(&suspects)?;
            self.check_leaks(agent, &failing)?;
            if scenario.world {
                self.judge_events(agent)?;
            }
        }
        let is_calm = !self.request.is_explored();
        self.interpreter().check_expectations(is_calm)?;
        // A stack that cannot be applied is tried again at every poll, and its namespaces with it.
        if is_any_failing { Ok(()) } else { self.check_idle() }
    }

    fn wait_for_convergence(&mut self) -> Result<(), StepError> {
        let end = self.world.now() + self.request.scenario.converges_within.0;
        while let Some(difference) = self.interpreter().find_difference()? {
            if self.world.now() >= end {
                return Err(StepError::violation("converged-at-the-end", difference));
            }
            if self.request.scenario.world {
                self.interpreter().approve_everything()?;
                let agents = &self.request.scenario.fleet.agents;
                agents.iter().try_for_each(|agent| self.interpreter().clean_up(agent))?;
            }
            let interval = if self.request.scenario.world { WORLD_CHECK_INTERVAL } else { CHECK_INTERVAL };
            self.world.advance(interval)?;
        }
        Ok(())
    }

    fn judge_events(&mut self, agent: &str) -> Result<(), StepError> {
        let events = self.interpreter().list_events_of(agent)?;
        let messages = events.iter().filter_map(|event| event.message.as_deref());
        judge_texts(SECRET_CANARY, messages).map_err(StepError::Violation)?;
        // The journal does not tell which state a restore brought back.
        let mut steps = self.request.scenario.steps.iter();
        if steps.any(|(_, step)| matches!(step, Step::RestoreEtcd(_))) {
            return Ok(());
        }
        let expected = self.expected.borrow();
        let judged = self.world.inspect(agent, |oracle, _| judge_successes(oracle, agent, &events, &expected));
        judged.unwrap_or(Ok(())).map_err(StepError::Violation)
    }

    fn check_leaks(&self, agent: &str, failing: &BTreeSet<String>) -> Result<(), StepError> {
        let leaks = self.world.inspect(agent, |oracle, server| {
            oracle.list_leaks(server.objects().map(|(key, object)| (key, &**object)), &self.expected.borrow(), failing)
        });
        match leaks.unwrap_or_default().first() {
            None => Ok(()),
            Some(key) => {
                let message = format!("{key} is left in {agent}, and no stack declares it");
                Err(StepError::violation("no-leak", message))
            }
        }
    }

    /// Checks that there are some polls in a row in which no agent writes. A process that was killed, or whose pass was
    /// interrupted by the end of a random world, may look converged from outside and still have to complete its inventory, so
    /// this may take a while. After that it takes more polls to prove that an agent does not write from time to time.
    fn check_idle(&mut self) -> Result<(), StepError> {
        let scenario = self.request.scenario;
        let may_end_late = self.request.is_explored() || scenario.world;
        let grace = if may_end_late { scenario.converges_within.0 } else { Duration::ZERO };
        let end = self.world.now() + grace;
        let mut polls = IDLE_POLLS;
        loop {
            let before = self.count_writes()?;
            self.world.advance(POLLING_INTERVAL * polls)?;
            let after = self.count_writes()?;
            let mut agents = scenario.fleet.agents.iter().zip(before.iter().zip(&after));
            let busy = agents.find_map(|(agent, (before, after))| Some((agent, after.describe_since(before)?)));
            let Some((agent, writes)) = busy else { return Ok(()) };
            polls = IDLE_POLLS_LATE;
            if self.world.now() >= end {
                let message = format!("the agent of {agent} wrote after everything had converged: {writes}");
                return Err(StepError::violation("an-idle-pass-writes-nothing", message));
            }
        }
    }

    fn count_writes(&mut self) -> Result<Vec<WriteCounts>, StepError> {
        let agents = &self.request.scenario.fleet.agents;
        agents.iter().map(|agent| self.world.count_writes(agent)).collect()
    }
}
