//! The interpreter's state, and lookups of the names that a scenario uses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use sindri_model::{AgentId, GeneratorId};

use super::served_kind::ServedKind;
use crate::environment::{Environment, StepError};
use crate::expected_state::{ExpectedStack, ExpectedState};
use crate::scenario::{Library, Scenario};

/// Interpreter of one scenario.
pub struct Interpreter<'a> {
    pub(super) environment: &'a mut dyn Environment,
    pub(super) library: &'a Library,
    pub(super) scenario: &'a Scenario,
    pub(super) expected: Rc<RefCell<ExpectedState>>,
    /// Time that is added to the limit of every wait.
    pub(super) extra_wait: Duration,
    /// Kinds that each cluster serves, as discovered in the present step.
    pub(super) kinds: BTreeMap<String, Rc<Vec<ServedKind>>>,
}

impl<'a> Interpreter<'a> {
    /// Creates the interpreter of a scenario in an environment whose agents are registered in the expected state.
    /// `extra_wait` is added to the limit of every wait: faults and real processes take longer.
    pub fn new(
        environment: &'a mut dyn Environment,
        library: &'a Library,
        scenario: &'a Scenario,
        expected: Rc<RefCell<ExpectedState>>,
        extra_wait: Duration,
    ) -> Self {
        Self { environment, library, scenario, expected, extra_wait, kinds: BTreeMap::new() }
    }

    pub(super) fn agent_id(&self, name: &str) -> Result<AgentId, StepError> {
        let id = self.expected.borrow().agents.get(name).copied();
        id.ok_or_else(|| StepError::Failed(format!("the fleet has no agent {name:?}")))
    }

    pub(super) fn generator_id(&self) -> Result<GeneratorId, StepError> {
        self.expected.borrow().generator.ok_or_else(|| StepError::Failed("there is no generator".to_owned()))
    }

    pub(super) fn read_stack<T>(&self, name: &str, read: impl FnOnce(&ExpectedStack) -> T) -> Result<T, StepError> {
        let expected = self.expected.borrow();
        expected.stacks.get(name).map(read).ok_or_else(|| unknown_stack(name))
    }

    pub(super) fn change_stack(&self, name: &str, change: impl FnOnce(&mut ExpectedStack)) -> Result<(), StepError> {
        let mut expected = self.expected.borrow_mut();
        expected.stacks.get_mut(name).map(change).ok_or_else(|| unknown_stack(name))
    }
}

fn unknown_stack(name: &str) -> StepError {
    StepError::Failed(format!("no stack {name:?} was submitted before"))
}
