//! A scenario file as a whole.

use std::time::Duration;

use serde::Deserialize;

use super::duration::Span;
use super::expectation::Expectation;
use super::fleet::Fleet;
use super::step::Step;
use super::step_list::StepList;
use crate::exploration::FaultKind;

/// One scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the file without its extension; filled in by the library.
    #[serde(skip)]
    pub name: String,
    /// One line that says what is proved.
    pub title: String,
    /// Ids of the behaviours that it proves.
    pub proves: Vec<String>,
    /// Hosts that take part.
    pub fleet: Fleet,
    /// Steps in order.
    pub steps: StepList,
    /// Expectations at the end of every run, with or without the faults of an exploration.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Expectations at the end of a run without the faults of an exploration.
    #[serde(default)]
    pub expect_calm: Vec<Expectation>,
    /// Stacks that cannot be applied, which is the point of the scenario.
    #[serde(default)]
    pub failing: Vec<String>,
    /// Faults that an exploration adds.
    #[serde(default)]
    pub explore: Vec<FaultKind>,
    /// True if it also runs once for each event of its agents, with the agent killed at that event.
    #[serde(default)]
    pub kill_at_every_event: bool,
    /// Longest time until everything has converged, once the faults have ended.
    #[serde(default = "default_convergence_time")]
    pub converges_within: Span,
    /// True if it also runs with real processes.
    #[serde(default)]
    pub real: bool,
    /// True for a random world: a step that is rejected is skipped; at the end agents are activated, policies are
    /// removed, held deletions are approved and people clean up, and then every stack is applied or has a reason why it
    /// cannot be.
    #[serde(default)]
    pub world: bool,
}

impl Scenario {
    /// Creates a scenario in a program: these steps, and no expectations.
    pub fn from_steps(fleet: Fleet, steps: Vec<Step>) -> Self {
        Self {
            name: "unnamed".to_owned(),
            title: String::new(),
            proves: Vec::new(),
            fleet,
            steps: StepList::from_steps(steps),
            expect: Vec::new(),
            expect_calm: Vec::new(),
            failing: Vec::new(),
            explore: Vec::new(),
            kill_at_every_event: false,
            converges_within: default_convergence_time(),
            real: false,
            world: false,
        }
    }
}

fn default_convergence_time() -> Span {
    Span(Duration::from_secs(10 * 60))
}
