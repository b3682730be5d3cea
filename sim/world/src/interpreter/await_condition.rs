//! Waits for reports of agents and for the removal of stacks.

use std::time::Duration;

use sindri_agent::STACK_LABEL;
use sindri_client::TargetStateResponse;
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, RevisionId};

use super::state::Interpreter;
use crate::environment::StepError;
use crate::expected_state::ExpectedStack;
use crate::scenario::Await;

/// Interval at which a condition is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl Interpreter<'_> {
    pub(super) fn wait_for(&mut self, condition: &Await) -> Result<(), StepError> {
        let agents: Vec<String> = match &condition.agent {
            Some(agent) => vec![agent.clone()],
            None => self.read_stack(&condition.stack, |stack| stack.ever_targeted.iter().cloned().collect())?,
        };
        let default = self.environment.polling_interval() * 2;
        let within = condition.within.map_or(default, |span| span.0) + self.extra_wait;
        let end = self.environment.now() + within;
        for agent in agents {
            while let Some(missing) = self.find_missing(condition, &agent)? {
                if self.environment.now() >= end {
                    let message = format!("stack {} at {agent}: {missing} within {within:?}", condition.stack);
                    return Err(StepError::violation("await", message));
                }
                self.environment.advance(CHECK_INTERVAL)?;
                self.kinds.clear();
            }
        }
        Ok(())
    }

    /// Describes the reason why a condition does not hold yet; `None` if it holds.
    fn find_missing(&mut self, condition: &Await, agent: &str) -> Result<Option<String>, StepError> {
        if condition.gone {
            return self.find_leftover(&condition.stack, agent);
        }
        if let Some(expected) = &condition.condition {
            return self.find_condition_mismatch(&condition.stack, agent, expected);
        }
        let number = match condition.applied {
            Some(number) => number,
            None => self.read_stack(&condition.stack, |stack| stack.revisions().count())?,
        };
        let id =
            |stack: &ExpectedStack| stack.revisions().nth(number.saturating_sub(1)).and_then(|revision| revision.id);
        let revision = self
            .read_stack(&condition.stack, id)?
            .ok_or_else(|| StepError::Failed(format!("stack {} has no revision {number}", condition.stack)))?;
        let last = self.last_outcome(self.agent_id(agent)?, revision)?;
        let holds = last.as_ref().is_some_and(|event| match &condition.failed {
            None => event.status == EventStatus::Success,
            Some(text) => {
                event.status == EventStatus::Failure && event.message.as_deref().unwrap_or_default().contains(text)
            }
        });
        let reported = last
            .map_or("nothing".to_owned(), |event| format!("{:?} {}", event.status, event.message.unwrap_or_default()));
        let expected =
            condition.failed.as_ref().map_or("a success".to_owned(), |text| format!("a failure with {text:?}"));
        Ok((!holds)
            .then(|| format!("revision {number} was not reported as {expected}; last reported: {}", reported.trim())))
    }

    /// Lists the events that an agent reported.
    pub(crate) fn list_events_of(&mut self, agent: &str) -> Result<Vec<AgentEvent>, StepError> {
        let agent = self.agent_id(agent)?;
        self.ask_broker(move |client| async move { client.list_events(agent).await })
    }

    /// Returns the last event that an agent reported about a revision.
    pub(super) fn last_outcome(
        &mut self,
        agent: AgentId,
        revision: RevisionId,
    ) -> Result<Option<AgentEvent>, StepError> {
        let events = self.ask_broker(move |client| async move { client.list_events(agent).await })?;
        Ok(events.into_iter().rfind(|event| event.deployment_object_id == revision))
    }

    /// Describes a remaining part of a stack in the cluster of an agent, or in its target state; `None` if it is gone.
    pub(super) fn find_leftover(&mut self, stack: &str, agent: &str) -> Result<Option<String>, StepError> {
        let (id, agent_id) = (self.read_stack(stack, |stack| stack.id)?, self.agent_id(agent)?);
        for kind in self.list_kinds(agent)?.iter() {
            let target = format!("{}?labelSelector={STACK_LABEL}%3D{id}", kind.path);
            let (_, list) = self.get(agent, &target)?;
            if let Some(item) = list["items"].as_array().and_then(|items| items.first()) {
                return Ok(Some(format!("{} {} still exists", kind.kind, item["metadata"]["name"])));
            }
        }
        let state = self.ask_broker(move |client| async move { client.get_target_state(agent_id, None).await })?;
        let TargetStateResponse::Changed { objects, .. } = state else {
            return Err(StepError::Failed("the broker responded 304 to a request without If-None-Match".to_owned()));
        };
        let is_open = objects.iter().any(|object| object.stack_id == id);
        Ok(is_open.then(|| "the stack is still in the agent's target state".to_owned()))
    }
}
