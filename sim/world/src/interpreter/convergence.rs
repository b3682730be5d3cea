//! Convergence: the broker and every cluster are in the state that the operator asked for last.

use std::collections::BTreeSet;

use sindri_model::wire::EventStatus;

use super::state::Interpreter;
use crate::environment::StepError;
use crate::expected_state::{ExpectedStack, ExpectedState, SubmittedRevision};
use crate::oracle::{NamespaceRollback, SuspectDeletion};

impl Interpreter<'_> {
    /// Describes a difference from the expected state; `None` if everything has converged.
    pub fn find_difference(&mut self) -> Result<Option<String>, StepError> {
        let stacks: Vec<(String, ExpectedStack)> =
            self.expected.borrow().stacks.iter().map(|(name, stack)| (name.clone(), stack.clone())).collect();
        for (name, stack) in &stacks {
            for agent in stack.ever_targeted.difference(&stack.undecided) {
                let difference = match stack.must_exist_at(agent) {
                    Some(revision) => self.find_unapplied(name, agent, revision)?,
                    None => self.find_unremoved(name, agent, stack)?,
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
        let is_failing = self.is_failing(name, agent, revision)?;
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

    /// Returns true if a stack cannot be applied: because the scenario says so, or because the last outcome is a failure
    /// for which the cluster of a random world has a reason.
    fn is_failing(&mut self, name: &str, agent: &str, revision: &SubmittedRevision) -> Result<bool, StepError> {
        if !self.scenario.world {
            return Ok(self.scenario.failing.iter().any(|failing| failing == name));
        }
        let Some(id) = revision.id else { return Ok(false) };
        let last = self.last_outcome(self.agent_id(agent)?, id)?;
        Ok(last.is_some_and(|event| event.status == EventStatus::Failure)
            && self.find_reason_against(name, agent, revision)?.is_some())
    }

    /// Lists the stacks that cannot be applied or removed in a cluster.
    pub(crate) fn list_failing(&mut self, agent: &str) -> Result<BTreeSet<String>, StepError> {
        if !self.scenario.world {
            return Ok(self.scenario.failing.iter().cloned().collect());
        }
        let stacks = self.expected.borrow().stacks.clone();
        let mut failing = BTreeSet::new();
        for (name, stack) in stacks.iter().filter(|(_, stack)| stack.ever_targeted.contains(agent)) {
            let is_held_up = match stack.must_exist_at(agent) {
                Some(revision) => self.is_failing(name, agent, revision)?,
                None => self.find_leftover(name, agent)?.is_some(),
            };
            if is_held_up {
                failing.insert(name.clone());
            }
        }
        Ok(failing)
    }

    /// Describes what is left of a stack that must be gone. In a random world a namespace or CRD stays while a stack declares
    /// an object in it or cannot delete the one that it had there, and an object stays until another stack that declares it
    /// can be applied.
    fn find_unremoved(&mut self, name: &str, agent: &str, stack: &ExpectedStack) -> Result<Option<String>, StepError> {
        let leftover = self.find_leftover(name, agent)?;
        if leftover.is_none() || !self.scenario.world {
            return Ok(leftover);
        }
        let may_stay = self.expected.borrow().has_needed_container(stack, agent)
            || self.is_held_by_failing_stack(name, agent, stack)?
            || self.find_failed_content(name, agent)?.is_some();
        Ok(leftover.filter(|_| !may_stay))
    }

    /// Finds another stack that has failed or cannot be removed, and that may have an object in a namespace, or of a kind, that this one
    /// no longer declares.
    pub(super) fn find_failed_content(&mut self, name: &str, agent: &str) -> Result<Option<String>, StepError> {
        let stacks = self.expected.borrow().stacks.clone();
        let Some(container) = stacks.get(name) else { return Ok(None) };
        for (other_name, other) in stacks.iter().filter(|(other, _)| *other != name) {
            if !ExpectedState::may_have_content(other, agent, container) {
                continue;
            }
            let has_failed = match other.must_exist_at(agent) {
                Some(newest) => match newest.id {
                    Some(id) => self
                        .last_outcome(self.agent_id(agent)?, id)?
                        .is_some_and(|event| event.status == EventStatus::Failure),
                    None => false,
                },
                None => other.ever_targeted.contains(agent) && self.find_leftover(other_name, agent)?.is_some(),
            };
            if has_failed {
                return Ok(Some(other_name.clone()));
            }
        }
        Ok(None)
    }

    /// Returns true if another stack cannot be applied, and declares an object of this one, or may have one in a namespace or of
    /// a kind of this one.
    fn is_held_by_failing_stack(&mut self, name: &str, agent: &str, stack: &ExpectedStack) -> Result<bool, StepError> {
        let others = self.expected.borrow().stacks.clone();
        for (other_name, other) in others.iter().filter(|(other, _)| *other != name) {
            let Some(newest) = other.must_exist_at(agent) else { continue };
            let declares_one =
                stack.revisions().flat_map(|revision| &revision.objects).any(|o| newest.declares(&o.key));
            let is_concerned = declares_one || ExpectedState::may_have_content(other, agent, stack);
            if is_concerned && self.is_failing(other_name, agent, newest)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that no object was deleted whose declaring revision the agent had reported as applied.
    pub(crate) fn judge_suspects(&mut self, suspects: &[SuspectDeletion]) -> Result<(), StepError> {
        for suspect in suspects {
            let agent = self.agent_id(&suspect.cluster)?;
            let events = self.ask_broker(move |client| async move { client.list_events(agent).await })?;
            let is_applied_before = events.iter().any(|event| {
                event.status == EventStatus::Success
                    && event.deployment_object_id == suspect.revision
                    && event.created_at > suspect.created
                    && event.created_at < suspect.deleted
            });
            if is_applied_before {
                let message = format!(
                    "the agent of {} deleted {}, which the newest revision declares and which it had applied",
                    suspect.cluster, suspect.key
                );
                return Err(StepError::violation("no-wanted-object-deleted", message));
            }
        }
        Ok(())
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
