//! The suite: every scenario of the library with `real: true`.
//!
//! Each case has processes, ports and files of its own, so that no case can depend on another.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sindri_cluster::Provider;
use sindri_world::environment::{Environment, StepError};
use sindri_world::expected_state::ExpectedState;
use sindri_world::interpreter::Interpreter;
use sindri_world::scenario::{Library, Scenario};
use tokio::time::Instant;

use crate::binaries::Binaries;
use crate::real_environment::RealEnvironment;
use crate::runtime::InterruptibleRuntime;
use crate::workspace::Workspace;

/// Added to every timeout of a scenario, for the start of processes and overloaded machines.
const EXTRA_WAIT: Duration = Duration::from_secs(30);
/// Maximum time to converge in real time; scenarios may allow more in virtual time.
const CONVERGE_MAX: Duration = Duration::from_secs(60);
/// Time between two checks for convergence.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All expectations hold.
    Passed,
    /// An expectation does not hold, or the scenario could not run to its end.
    Failed(String),
    /// A step is not supported with real processes: the scenario should not be in the suite.
    NotRunnable(String),
    /// A step is not supported by this provider of clusters. Reported as skipped, and no failure.
    NotHere(String),
    /// This machine cannot start a cluster of this provider: no scenario can run.
    NotRun(String),
}

impl Outcome {
    fn from_step_error(error: &StepError) -> Self {
        match error {
            StepError::Unsupported(_) => Self::NotRunnable(error.to_string()),
            StepError::UnsupportedByCluster(_) => Self::NotHere(error.to_string()),
            StepError::Unavailable(_) => Self::NotRun(error.to_string()),
            StepError::Violation(_) | StepError::Rejected(_) | StepError::Failed(_) => Self::Failed(error.to_string()),
        }
    }

    /// Returns true if it counts as passed.
    pub fn is_passed(&self) -> bool {
        *self == Self::Passed
    }
}

/// A scenario that was run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the scenario.
    pub name: String,
    /// Ids of the behaviours that it proves.
    pub behaviours: Vec<String>,
    /// Outcome.
    pub outcome: Outcome,
    /// Duration, with the start and the end of its processes.
    pub took: Duration,
    /// Last lines of every process, if it failed.
    pub logs: String,
}

/// Returns the scenarios of the suite whose name or title contains a text.
pub fn choose<'a>(library: &'a Library, filter: &str) -> Vec<&'a Scenario> {
    let matches = |scenario: &&Scenario| scenario.name.contains(filter) || scenario.title.contains(filter);
    library.scenarios.iter().filter(|scenario| scenario.real).filter(matches).collect()
}

/// Runs one scenario.
pub fn run(
    scenario: &Scenario,
    library: &Library,
    provider: &dyn Provider,
    binaries: &Binaries,
    runtime: &Rc<InterruptibleRuntime>,
) -> Case {
    let began = Instant::now();
    let (outcome, logs) = match start_environment(binaries, runtime) {
        Ok(mut environment) => match run_steps(&mut environment, provider, scenario, library) {
            Ok(()) => (Outcome::Passed, String::new()),
            Err(error) => {
                let outcome = Outcome::from_step_error(&error);
                // The logs do not explain an unsupported step.
                let logs = if matches!(outcome, Outcome::Failed(_)) { environment.tails() } else { String::new() };
                (outcome, logs)
            }
        },
        Err(error) => (Outcome::from_step_error(&error), String::new()),
    };
    let (name, behaviours) = (scenario.name.clone(), scenario.proves.clone());
    Case { name, behaviours, outcome, took: began.elapsed(), logs }
}

fn start_environment(binaries: &Binaries, runtime: &Rc<InterruptibleRuntime>) -> Result<RealEnvironment, StepError> {
    let workspace =
        Workspace::new(binaries.clone(), runtime.clone()).map_err(|error| StepError::Failed(error.to_string()))?;
    RealEnvironment::new(workspace)
}

fn run_steps(
    environment: &mut RealEnvironment,
    provider: &dyn Provider,
    scenario: &Scenario,
    library: &Library,
) -> Result<(), StepError> {
    let expected_state = Rc::new(RefCell::new(ExpectedState::default()));
    environment.add_clusters(&scenario.fleet, provider, &expected_state)?;
    Interpreter::new(environment, library, scenario, expected_state.clone(), EXTRA_WAIT).run_steps()?;
    environment.end_faults()?;
    let bound = scenario.converges_within.0.min(CONVERGE_MAX);
    let end = environment.now() + bound;
    while let Some(missing) =
        Interpreter::new(environment, library, scenario, expected_state.clone(), EXTRA_WAIT).find_difference()?
    {
        if environment.now() >= end {
            return Err(StepError::violation("converged-at-the-end", format!("{missing} within {bound:?}")));
        }
        environment.advance(CHECK_INTERVAL)?;
    }
    Interpreter::new(environment, library, scenario, expected_state, EXTRA_WAIT).check_expectations(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsupported_step_is_never_a_pass() {
        let outcome = Outcome::from_step_error(&StepError::Unsupported("cut the network"));
        assert_eq!(outcome, Outcome::NotRunnable("this environment cannot cut the network".into()));
        assert!(!outcome.is_passed());
        let outcome = Outcome::from_step_error(&StepError::Unavailable("kind cannot run here".into()));
        assert_eq!(outcome, Outcome::NotRun("kind cannot run here".into()));
        assert!(!outcome.is_passed());
    }
}
