//! What agents say about stacks, as the broker knows it.

use sindri_model::wire::Condition;

use super::Play;
use crate::scenario::Said;
use crate::stage::Trouble;

impl Play<'_> {
    /// What an agent has not said about the newest submission of a stack; `None` when it has.
    pub(super) fn unsaid(&mut self, stack: &str, agent: &str, said: &Said) -> Result<Option<String>, Trouble> {
        let (id, agent) = (self.stack(stack, |stack| stack.id)?, self.agent(agent)?);
        let status = self.ask(move |client| async move { client.stack_status(id).await })?;
        let here = status.agents.iter().find(|here| here.agent_id == agent);
        let here = here.filter(|here| here.deployment_object_id == status.deployment_object_id);
        let condition = here.and_then(|here| here.conditions.iter().find(|condition| condition.kind == said.kind));
        let wanted = format!("{} is not {} ({:?} {:?})", said.kind, said.status, said.reason, said.message_has);
        Ok(match condition {
            Some(condition) if fits(condition, said) => None,
            Some(condition) => Some(format!("{wanted}; it is {condition:?}")),
            None => Some(format!("{wanted}; nothing was said of this revision")),
        })
    }
}

fn fits(condition: &Condition, said: &Said) -> bool {
    condition.status == said.status
        && said.reason.as_ref().is_none_or(|reason| *reason == condition.reason)
        && said.message_has.iter().all(|text| condition.message.contains(text))
}
