//! Convergence: the broker and every cluster are in the state that the operator asked for last.

use sindri_model::wire::EventStatus;

use super::state::Interpreter;
use crate::environment::StepError;
use crate::expected_state::{ExpectedStack, SubmittedRevision};
use crate::oracle::NamespaceRollback;

impl Interpreter<'_> {
    /// Describes a difference from the expected state; `None` if everything has converged.
    pub fn find_difference(&mut self) -> Result<Option<String>, StepError> {
        let stacks: Vec<(String, ExpectedStack)> =
            self.expected.borrow().stacks.iter().map(|(name, stack)| (name.clone(), stack.clone())).collect();
        for (name, stack) in &stacks {
            for agent in stack.ever_targeted.difference(&stack.undecided) {
                let difference = match stack.must_exist_at(agent) {
                    Some(revision) => self.find_unapplied(name, agent, revision)?,
                    None => self.find_leftover(name, agent)?,
                };
                if let Some(difference) = difference {
                    return Ok(Some(format!("stack {name} at {agent}: {difference}")));
                }
            }
        }
        Ok(None)
    }

    fn find_unapplied(
        &mut self,
        name: &str,
        agent: &str,
        revision: &SubmittedRevision,
    ) -> Result<Option<String>, StepError> {
        let is_failing = self.scenario.failing.iter().any(|failing| failing == name);
        let expected = if is_failing { EventStatus::Failure } else { EventStatus::Success };
        let id = revision.id.ok_or_else(|| StepError::Failed(format!("stack {name} was never accepted")))?;
        match self.last_outcome(self.agent_id(agent)?, id)? {
            Some(event) if event.status == expected => {}
            Some(event) => {
                let message = event.message.unwrap_or_default();
                return Ok(Some(format!("the agent last reported {:?} {message}", event.status)));
            }
            None => return Ok(Some("the agent reported nothing".to_owned())),
        }
        if is_failing {
            return Ok(None);
        }
        for object in &revision.objects {
            if !self.is_as_declared(agent, object)? {
                return Ok(Some(format!("{} is not as declared", object.key)));
            }
        }
        Ok(None)
    }

    /// Checks that a declared namespace was deleted only by the pass that created it: no success lies in between.
    pub(crate) fn judge_rollbacks(&mut self, rollbacks: &[NamespaceRollback]) -> Result<(), StepError> {
        for rollback in rollbacks {
            let agent = self.agent_id(&rollback.cluster)?;
            let events = self.ask_broker(move |client| async move { client.list_events(agent).await })?;
            let revisions: Vec<_> = {
                let expected = self.expected.borrow();
                let stack = expected.find_stack(&rollback.stack);
                stack.into_iter().flat_map(ExpectedStack::revisions).filter_map(|revision| revision.id).collect()
            };
            let is_applied_between = events.iter().any(|event| {
                event.status == EventStatus::Success
                    && revisions.contains(&event.deployment_object_id)
                    && event.created_at > rollback.created
                    && event.created_at < rollback.deleted
            });
            if is_applied_between {
                let message = format!(
                    "the agent of {} deleted Namespace {}, which it had applied with success",
                    rollback.cluster, rollback.name
                );
                return Err(StepError::violation("no-wanted-object-deleted", message));
            }
        }
        Ok(())
    }
}
