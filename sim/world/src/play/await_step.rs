//! Waiting for what agents report and for what clusters hold.

use std::time::Duration;

use sindri_agent::STACK_LABEL;
use sindri_client::TargetState;
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, RevisionId};

use super::Play;
use crate::scenario::Await;
use crate::stage::Trouble;

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Play<'_> {
    pub(super) fn wait_for(&mut self, condition: &Await) -> Result<(), Trouble> {
        let agents: Vec<String> = match &condition.agent {
            Some(agent) => vec![agent.clone()],
            None => self.stack(&condition.stack, |stack| stack.ever_targeted.iter().cloned().collect())?,
        };
        let within = condition.within.map_or(self.stage.polling_interval() * 2, |span| span.0) + self.patience;
        let end = self.stage.now() + within;
        for agent in agents {
            while let Some(missing) = self.missing(condition, &agent)? {
                if self.stage.now() >= end {
                    let message = format!("stack {} at {agent}: {missing} within {within:?}", condition.stack);
                    return Err(Trouble::violation("await", message));
                }
                self.stage.advance(LOOK_EVERY)?;
            }
        }
        Ok(())
    }

    /// What still has to happen; `None` when the condition holds.
    fn missing(&mut self, condition: &Await, agent: &str) -> Result<Option<String>, Trouble> {
        if condition.gone {
            return self.not_gone(&condition.stack, agent);
        }
        if let Some(said) = &condition.condition {
            return self.unsaid(&condition.stack, agent, said);
        }
        let number = match condition.applied {
            Some(number) => number,
            None => self.stack(&condition.stack, |stack| stack.declarations().count())?,
        };
        let declared = |stack: &crate::ledger::StackRecord| {
            stack.declarations().nth(number.saturating_sub(1)).and_then(|declaration| declaration.revision)
        };
        let revision = self
            .stack(&condition.stack, declared)?
            .ok_or_else(|| Trouble::Broken(format!("stack {} has no submission {number}", condition.stack)))?;
        let last = self.last_outcome(self.agent(agent)?, revision)?;
        let holds = last.as_ref().is_some_and(|event| match &condition.failed {
            None => event.status == EventStatus::Success,
            Some(text) => {
                event.status == EventStatus::Failure && event.message.as_deref().unwrap_or_default().contains(text)
            }
        });
        let heard = last
            .map_or("nothing".to_owned(), |event| format!("{:?} {}", event.status, event.message.unwrap_or_default()));
        let wanted =
            condition.failed.as_ref().map_or("a success".to_owned(), |text| format!("a failure with {text:?}"));
        Ok((!holds).then(|| format!("submission {number} did not come to {wanted}; last heard: {}", heard.trim())))
    }

    /// The last event that an agent reported of a revision.
    pub(crate) fn last_outcome(&mut self, agent: AgentId, revision: RevisionId) -> Result<Option<AgentEvent>, Trouble> {
        let events = self.ask(move |client| async move { client.events(agent).await })?;
        Ok(events.into_iter().rfind(|event| event.deployment_object_id == revision))
    }

    /// What is left of a stack at an agent, or at the broker for that agent.
    pub(crate) fn not_gone(&mut self, stack: &str, agent: &str) -> Result<Option<String>, Trouble> {
        let (id, agent_id) = (self.stack(stack, |stack| stack.id)?, self.agent(agent)?);
        for kind in self.kinds_of(agent)? {
            let target = format!("{}?labelSelector={STACK_LABEL}%3D{id}", kind.path);
            let (_, list) = self.get(agent, &target)?;
            if let Some(item) = list["items"].as_array().and_then(|items| items.first()) {
                return Ok(Some(format!("{} {} is still there", kind.kind, item["metadata"]["name"])));
            }
        }
        let state = self.ask(move |client| async move { client.target_state(agent_id, None).await })?;
        let TargetState::Changed { objects, .. } = state else {
            return Err(Trouble::Broken("a target state that nobody had was unchanged".to_owned()));
        };
        let open = objects.iter().any(|object| object.stack_id == id);
        Ok(open.then(|| "the broker still sends the instruction".to_owned()))
    }
}
