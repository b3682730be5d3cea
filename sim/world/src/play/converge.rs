//! Whether everything is as it was last asked for: at the broker and in every cluster.

use sindri_model::wire::EventStatus;

use super::Play;
use crate::ledger::{Declaration, StackRecord};
use crate::oracle::TakenBack;
use crate::stage::Trouble;

impl Play<'_> {
    /// What is not as it should be; `None` when everything is.
    pub fn unconverged(&mut self) -> Result<Option<String>, Trouble> {
        let stacks: Vec<(String, StackRecord)> =
            self.ledger.borrow().stacks.iter().map(|(name, stack)| (name.clone(), stack.clone())).collect();
        for (name, stack) in &stacks {
            for agent in stack.ever_targeted.difference(&stack.undecided) {
                let missing = match stack.wanted_at(agent) {
                    Some(declaration) => self.not_in_place(name, agent, declaration)?,
                    None => self.not_gone(name, agent)?,
                };
                if let Some(missing) = missing {
                    return Ok(Some(format!("stack {name} at {agent}: {missing}")));
                }
            }
        }
        Ok(None)
    }

    fn not_in_place(&mut self, name: &str, agent: &str, declaration: &Declaration) -> Result<Option<String>, Trouble> {
        let failing = self.scenario.failing.iter().any(|failing| failing == name);
        let wanted = if failing { EventStatus::Failure } else { EventStatus::Success };
        let revision =
            declaration.revision.ok_or_else(|| Trouble::Broken(format!("stack {name} was never accepted")))?;
        match self.last_outcome(self.agent(agent)?, revision)? {
            Some(event) if event.status == wanted => {}
            Some(event) => {
                let message = event.message.unwrap_or_default();
                return Ok(Some(format!("the agent last reported {:?} {message}", event.status)));
            }
            None => return Ok(Some("the agent reported nothing".to_owned())),
        }
        if failing {
            return Ok(None);
        }
        for object in &declaration.objects {
            if !self.is_in_place(agent, object)? {
                return Ok(Some(format!("{} is not as it is declared", object.key)));
            }
        }
        Ok(None)
    }

    /// A wanted namespace may be deleted only by the pass that made it: no success lies in between.
    pub(crate) fn judge_rollbacks(&mut self, taken_back: &[TakenBack]) -> Result<(), Trouble> {
        for rollback in taken_back {
            let agent = self.agent(&rollback.cluster)?;
            let events = self.ask(move |client| async move { client.events(agent).await })?;
            let revisions: Vec<_> = {
                let ledger = self.ledger.borrow();
                let stack = ledger.by_id(&rollback.stack);
                stack.into_iter().flat_map(StackRecord::declarations).filter_map(|found| found.revision).collect()
            };
            let between = events.iter().any(|event| {
                event.status == EventStatus::Success
                    && revisions.contains(&event.deployment_object_id)
                    && event.created_at > rollback.made
                    && event.created_at < rollback.deleted
            });
            if between {
                let message = format!(
                    "the agent of {} deleted Namespace {}, which it had applied with success",
                    rollback.cluster, rollback.name
                );
                return Err(Trouble::violation("no-wanted-object-deleted", message));
            }
        }
        Ok(())
    }
}
