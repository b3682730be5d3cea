//! Conditions that agents report about stacks, as the broker knows them.

use sindri_model::wire::Condition;

use super::state::Interpreter;
use crate::environment::StepError;
use crate::scenario::ExpectedCondition;

impl Interpreter<'_> {
    /// Compares the condition that an agent reported about the newest revision of a stack; `None` if it is as expected.
    pub(super) fn find_condition_mismatch(
        &mut self,
        stack: &str,
        agent: &str,
        expected: &ExpectedCondition,
    ) -> Result<Option<String>, StepError> {
        let (id, agent) = (self.read_stack(stack, |stack| stack.id)?, self.agent_id(agent)?);
        let status = self.ask_broker(move |client| async move { client.get_stack_status(id).await })?;
        let reported = status.agents.iter().find(|reported| reported.agent_id == agent);
        let reported = reported.filter(|reported| reported.deployment_object_id == status.deployment_object_id);
        let condition = reported
            .and_then(|reported| reported.conditions.iter().find(|known| known.kind == expected.condition_type));
        let ExpectedCondition { condition_type, status, reason, message_has } = expected;
        let mismatch = format!("{condition_type} is not {status} ({reason:?} {message_has:?})");
        Ok(match condition {
            Some(condition) if matches(condition, expected) => None,
            Some(condition) => Some(format!("{mismatch}; it is {condition:?}")),
            None => Some(format!("{mismatch}; the agent reported no such condition of this revision")),
        })
    }
}

fn matches(condition: &Condition, expected: &ExpectedCondition) -> bool {
    condition.status == expected.status
        && expected.reason.as_ref().is_none_or(|reason| *reason == condition.reason)
        && expected.message_has.iter().all(|text| condition.message.contains(text))
}
