//! The suite: every story of the library that is marked `real: true`, played one after another.
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
use crate::site::Site;
use crate::stage::RealEnvironment;
use crate::waiter::Waiter;

/// What is added to every wait of a story: processes start, and machines are busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest that a story may take to converge, however long it may take in virtual time.
const CONVERGE_MAX: Duration = Duration::from_secs(60);
/// How often convergence is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As the story expects.
    Passed,
    /// Not as the story expects, or the story could not be played to its end.
    Failed(String),
    /// The story asks for what this stage cannot do: it should not be in the suite.
    NotRunnable(String),
    /// The story asks for what cannot be done with a cluster of this kind. Told, and no failure.
    NotHere(String),
    /// This machine cannot have a cluster of this kind: no story can be played.
    NotRun(String),
}

impl Outcome {
    fn of(trouble: &StepError) -> Self {
        match trouble {
            StepError::Unsupported(_) => Self::NotRunnable(trouble.to_string()),
            StepError::UnsupportedByCluster(_) => Self::NotHere(trouble.to_string()),
            StepError::Unavailable(_) => Self::NotRun(trouble.to_string()),
            StepError::Violation(_) | StepError::Failed(_) => Self::Failed(trouble.to_string()),
        }
    }

    /// Whether it counts as passed.
    pub fn is_passed(&self) -> bool {
        *self == Self::Passed
    }
}

/// A case that was played.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the story.
    pub name: String,
    /// What it proves, by id.
    pub behaviours: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, with the start and the end of its processes.
    pub took: Duration,
    /// The last lines of every process, if it failed.
    pub logs: String,
}

/// The stories of the suite whose name or title has a text.
pub fn choose<'a>(library: &'a Library, filter: &str) -> Vec<&'a Scenario> {
    let fits = |scenario: &&Scenario| scenario.name.contains(filter) || scenario.title.contains(filter);
    library.scenarios.iter().filter(|scenario| scenario.real).filter(fits).collect()
}

/// Plays one story.
pub fn play(
    scenario: &Scenario,
    library: &Library,
    provider: &dyn Provider,
    binaries: &Binaries,
    waiter: &Rc<Waiter>,
) -> Case {
    let began = Instant::now();
    let (outcome, logs) = match stage(binaries, waiter) {
        Ok(mut stage) => match acts(&mut stage, provider, scenario, library) {
            Ok(()) => (Outcome::Passed, String::new()),
            Err(trouble) => {
                let outcome = Outcome::of(&trouble);
                // The processes have nothing to say about what the stage cannot do.
                let logs = if matches!(outcome, Outcome::Failed(_)) { stage.tails() } else { String::new() };
                (outcome, logs)
            }
        },
        Err(trouble) => (Outcome::of(&trouble), String::new()),
    };
    let (name, behaviours) = (scenario.name.clone(), scenario.proves.clone());
    Case { name, behaviours, outcome, took: began.elapsed(), logs }
}

fn stage(binaries: &Binaries, waiter: &Rc<Waiter>) -> Result<RealEnvironment, StepError> {
    let site = Site::new(binaries.clone(), waiter.clone()).map_err(|error| StepError::Failed(error.to_string()))?;
    RealEnvironment::new(site)
}

fn acts(
    stage: &mut RealEnvironment,
    provider: &dyn Provider,
    scenario: &Scenario,
    library: &Library,
) -> Result<(), StepError> {
    let ledger = Rc::new(RefCell::new(ExpectedState::default()));
    stage.add_clusters(&scenario.fleet, provider, &ledger)?;
    Interpreter::new(stage, library, scenario, ledger.clone(), PATIENCE).run_steps()?;
    stage.end_faults()?;
    let bound = scenario.converges_within.0.min(CONVERGE_MAX);
    let end = stage.now() + bound;
    while let Some(missing) = Interpreter::new(stage, library, scenario, ledger.clone(), PATIENCE).find_difference()? {
        if stage.now() >= end {
            return Err(StepError::violation("converged-at-the-end", format!("{missing} within {bound:?}")));
        }
        stage.advance(LOOK_EVERY)?;
    }
    Interpreter::new(stage, library, scenario, ledger, PATIENCE).check_expectations(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stage_cannot_do_is_never_a_pass() {
        let outcome = Outcome::of(&StepError::Unsupported("cut the network"));
        assert_eq!(outcome, Outcome::NotRunnable("this stage cannot cut the network".into()));
        assert!(!outcome.is_passed());
        let outcome = Outcome::of(&StepError::Unavailable("kind cannot run here".into()));
        assert_eq!(outcome, Outcome::NotRun("kind cannot run here".into()));
        assert!(!outcome.is_passed());
    }
}
