//! What the operator does with the broker. A broker that is away is asked again: the story waits for it.

use std::future::Future;
use std::time::Duration;

use sindri_client::{Client, ClientError};
use sindri_model::GeneratorId;
use sindri_model::wire::{AgentStatus, ApprovalState, NewStack, UpdateAgentRequest};

use super::Play;
use crate::ledger::{Declaration, Instruction, StackRecord};
use crate::scenario::{Activation, Annotating, Labelling, Submit};
use crate::stage::{Trouble, enlist_one, operate};

/// How often the operator asks a broker that does not answer, and how long it waits in between.
const TRIES_MAX: u32 = 120;
const PAUSE: Duration = Duration::from_secs(1);

impl Play<'_> {
    /// Calls the broker until it answers.
    pub(crate) fn ask<T, F>(&mut self, call: impl Fn(Client) -> F + Clone + Send + Sync + 'static) -> Result<T, Trouble>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        let answer = operate(self.stage, move |client| async move {
            let mut tries = 0;
            loop {
                match call(client.clone()).await {
                    Err(error) if error.is_transient() && tries < TRIES_MAX => tries += 1,
                    decided => return decided,
                }
                tokio::time::sleep(PAUSE).await;
            }
        })?;
        answer.map_err(|error| Trouble::Broken(error.to_string()))
    }

    pub(super) fn submit(&mut self, submit: &Submit) -> Result<(), Trouble> {
        let text = match (&submit.bundle, &submit.yaml) {
            (Some(bundle), _) => self.library.bundle(bundle).map_err(Trouble::Broken)?,
            (None, Some(yaml)) => self.written_out(yaml)?,
            (None, None) => return Err(Trouble::Broken("submit takes either a bundle or a yaml".to_owned())),
        };
        if !self.ledger.borrow().stacks.contains_key(&submit.stack) {
            self.make_stack(&submit.stack)?;
        }
        let id = self.stack(&submit.stack, |stack| stack.id)?;
        // Noted before it is sent: an agent may act on it before the operator has the answer.
        self.note(&submit.stack, |stack| stack.instructions.push(Instruction::Declare(Declaration::of(&text))))?;
        let revision = self.ask(move |client| {
            let text = text.clone();
            async move { client.submit(id, &text).await }
        })?;
        self.note(&submit.stack, |stack| {
            if let Some(Instruction::Declare(declaration)) = stack.instructions.last_mut() {
                declaration.revision = Some(revision.id);
            }
        })?;
        if self.stack(&submit.stack, |stack| stack.ever_targeted.is_empty())? {
            let agents = submit.to.clone().unwrap_or_else(|| self.scenario.fleet.agents.clone());
            agents.iter().try_for_each(|agent| self.target(&submit.stack, agent))?;
        }
        Ok(())
    }

    fn make_stack(&mut self, name: &str) -> Result<(), Trouble> {
        let generator_id = self.generator()?;
        let wanted = NewStack { name: name.to_owned(), description: None, generator_id };
        let stack = self.ask(move |client| {
            let wanted = wanted.clone();
            async move {
                // An earlier try may have been carried out although its answer was lost.
                let known = client.stacks().await?.into_iter().find(|stack| stack.name == wanted.name);
                match known {
                    Some(stack) => Ok(stack),
                    None => client.create_stack(&wanted).await,
                }
            }
        })?;
        self.ledger.borrow_mut().stacks.insert(name.to_owned(), StackRecord::new(stack.id));
        Ok(())
    }

    pub(super) fn delete(&mut self, name: &str) -> Result<(), Trouble> {
        let id = self.stack(name, |stack| stack.id)?;
        self.note(name, StackRecord::delete)?;
        self.ask(move |client| async move { gone_is_fine(client.delete_stack(id).await) })
    }

    pub(super) fn target(&mut self, name: &str, agent: &str) -> Result<(), Trouble> {
        let (stack, id) = (self.stack(name, |stack| stack.id)?, self.agent(agent)?);
        self.note(name, |stack| stack.target(agent))?;
        self.ask(move |client| async move { there_is_fine(client.add_target(id, stack).await.map(drop)) })
    }

    pub(super) fn untarget(&mut self, name: &str, agent: &str) -> Result<(), Trouble> {
        let (stack, id) = (self.stack(name, |stack| stack.id)?, self.agent(agent)?);
        self.note(name, |stack| stack.untarget(agent))?;
        self.ask(move |client| async move { gone_is_fine(client.remove_target(id, stack).await) })
    }

    pub(super) fn label(&mut self, Labelling { stack: name, agent, label }: &Labelling) -> Result<(), Trouble> {
        let (stack, id) = (self.stack(name, |stack| stack.id)?, self.agent(agent)?);
        self.note(name, |stack| stack.target(agent))?;
        let label = label.clone();
        self.ask(move |client| {
            let label = label.clone();
            async move {
                there_is_fine(client.label_stack(stack, &label).await.map(drop))?;
                there_is_fine(client.label_agent(id, &label).await.map(drop))
            }
        })
    }

    pub(super) fn unlabel(&mut self, Labelling { stack: name, agent, label }: &Labelling) -> Result<(), Trouble> {
        let id = self.agent(agent)?;
        self.note(name, |stack| stack.untarget(agent))?;
        let label = label.clone();
        self.ask(move |client| {
            let label = label.clone();
            async move { gone_is_fine(client.unlabel_agent(id, &label).await) }
        })
    }

    pub(super) fn annotate(&mut self, annotating: &Annotating) -> Result<(), Trouble> {
        let id = self.stack(&annotating.stack, |stack| stack.id)?;
        let (key, value) = (annotating.key.clone(), annotating.value.clone());
        self.ask(move |client| {
            let (key, value) = (key.clone(), value.clone());
            async move {
                gone_is_fine(client.remove_stack_annotation(id, &key).await)?;
                match &value {
                    Some(value) => there_is_fine(client.annotate_stack(id, &key, value).await.map(drop)),
                    None => Ok(()),
                }
            }
        })
    }

    /// Decides everything that is held back of a stack.
    pub(super) fn decide(&mut self, name: &str, is_approved: bool) -> Result<(), Trouble> {
        let id = self.stack(name, |stack| stack.id)?;
        let decided = self.ask(move |client| async move {
            let pending = client.approvals(Some(ApprovalState::Pending)).await?;
            let mut decided = 0;
            for approval in pending.into_iter().filter(|approval| approval.stack_id == id) {
                let decision =
                    if is_approved { client.approve(approval.id).await } else { client.reject(approval.id).await };
                // The agent may want something else by now.
                decided += usize::from(there_is_fine(decision.map(drop)).is_ok());
            }
            Ok(decided)
        })?;
        if decided == 0 {
            return Err(Trouble::violation("expect", format!("nothing of stack {name} waits for an approval")));
        }
        Ok(())
    }

    pub(super) fn dismiss(&mut self, name: &str) -> Result<(), Trouble> {
        let id = self.agent(name)?;
        self.ledger.borrow_mut().stacks.values_mut().for_each(|stack| stack.leave(name));
        self.ask(move |client| async move { gone_is_fine(client.delete_agent(id).await) })
    }

    pub(super) fn enlist(&mut self, name: &str) -> Result<(), Trouble> {
        let generator = self.generator()?;
        let wanted = name.to_owned();
        let made = self.ask(move |client| {
            let wanted = wanted.clone();
            async move {
                // An earlier try may have been carried out although its answer, and with it the key, was lost.
                match client.find_agent(&wanted, &wanted).await {
                    Ok(found) => client.delete_agent(found.id).await?,
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
                enlist_one(&client, &wanted, generator).await
            }
        })?;
        self.ledger.borrow_mut().agents.insert(name.to_owned(), made.agent.id);
        self.stage.give_key(name, made.initial_pak)
    }

    fn generator(&self) -> Result<GeneratorId, Trouble> {
        self.ledger.borrow().generator.ok_or_else(|| Trouble::Broken("there is no generator".to_owned()))
    }

    pub(super) fn activate(&mut self, activation: &Activation) -> Result<(), Trouble> {
        let id = self.agent(&activation.agent)?;
        let status = if activation.active { AgentStatus::Active } else { AgentStatus::Inactive };
        let changes = UpdateAgentRequest { status: Some(status), ..UpdateAgentRequest::default() };
        self.ask(move |client| {
            let changes = changes.clone();
            async move { client.update_agent(id, &changes).await.map(drop) }
        })
    }

    pub(crate) fn agent(&self, name: &str) -> Result<sindri_model::AgentId, Trouble> {
        let found = self.ledger.borrow().agents.get(name).copied();
        found.ok_or_else(|| Trouble::Broken(format!("the fleet has no agent {name:?}")))
    }

    pub(crate) fn stack<T>(&self, name: &str, read: impl FnOnce(&StackRecord) -> T) -> Result<T, Trouble> {
        let ledger = self.ledger.borrow();
        ledger.stacks.get(name).map(read).ok_or_else(|| unknown(name))
    }

    fn note(&self, name: &str, change: impl FnOnce(&mut StackRecord)) -> Result<(), Trouble> {
        let mut ledger = self.ledger.borrow_mut();
        ledger.stacks.get_mut(name).map(change).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Trouble {
    Trouble::Broken(format!("no stack {name:?} was submitted before"))
}

/// What was made although its answer was lost is there when it is tried again.
fn there_is_fine(result: Result<(), ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error) if error.status() == Some(http::StatusCode::CONFLICT) => Ok(()),
        other => other,
    }
}

/// A deletion that was carried out although its answer was lost finds nothing when it is tried again.
fn gone_is_fine(result: Result<(), ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}
