//! Proposals: the operator asks for the plans of a text that is not submitted.

use std::time::Duration;

use sindri_model::StackId;
use sindri_model::wire::{PlanStatus, Proposal, ProposedPlan};

use super::state::Interpreter;
use crate::environment::StepError;
use crate::scenario::Propose;

/// Interval at which the plans are read.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl Interpreter<'_> {
    /// Proposes a text, and waits until the plans are as expected. If a plan is another one where faults were added, the text is
    /// proposed again.
    pub(super) fn propose(&mut self, propose: &Propose) -> Result<(), StepError> {
        let text = self.read_text(propose.bundle.as_deref(), propose.yaml.as_deref())?;
        let stack = self.read_stack(&propose.stack, |stack| stack.id)?;
        let within = propose.within.map_or(self.environment.polling_interval(), |span| span.0) + self.extra_wait;
        let end = self.environment.now() + within;
        let mut proposal = self.create_proposal(stack, &text)?;
        while let Some(missing) = find_mismatch(propose, &proposal) {
            if self.environment.now() >= end {
                let message = format!("stack {}: {missing} within {within:?}", propose.stack);
                return Err(StepError::violation("propose", message));
            }
            self.environment.advance(CHECK_INTERVAL)?;
            let is_answered = proposal.agents.iter().all(|plan| plan.plan.is_some());
            proposal = match is_answered {
                true => self.create_proposal(stack, &text)?,
                false => {
                    let id = proposal.id;
                    self.ask_broker(move |client| async move { client.get_proposal(stack, id).await })?
                }
            };
        }
        Ok(())
    }

    fn create_proposal(&mut self, stack: StackId, text: &str) -> Result<Proposal, StepError> {
        let text = text.to_owned();
        self.ask_broker(move |client| {
            let text = text.clone();
            async move {
                let created = client.create_proposal(stack, &text).await?;
                client.get_proposal(stack, created.id).await
            }
        })
    }
}

/// Describes the first plan that is not as expected.
fn find_mismatch(propose: &Propose, proposal: &Proposal) -> Option<String> {
    let expected = |plan: &&ProposedPlan| propose.agent.as_ref().is_none_or(|agent| plan.name == *agent);
    let status = if propose.fails { PlanStatus::Failed } else { PlanStatus::Planned };
    proposal.agents.iter().filter(expected).find_map(|plan| {
        let (agent, text) = (&plan.name, plan.plan.as_deref().unwrap_or_default());
        if plan.status != status {
            return Some(format!("the plan of {agent} is {:?}, not {status:?}: {text}", plan.status));
        }
        if propose.changes.is_some() && propose.changes != plan.changes {
            return Some(format!("the plan of {agent} has changes: {:?}: {text}", plan.changes));
        }
        let missing = propose.plan.iter().find(|part| !text.contains(part.as_str()))?;
        Some(format!("the plan of {agent} does not contain {missing:?}: {text}"))
    })
}
