//! Calls of the operator to the broker. They are repeated until the broker responds: the scenario waits for it.

use std::future::Future;
use std::time::Duration;

use sindri_client::{Client, ClientError};
use sindri_model::wire::{AgentStatus, Approval, ApprovalState, NewStack, UpdateAgentRequest};

use super::state::Interpreter;
use crate::environment::{StepError, call_broker, register_agent};
use crate::expected_state::{ExpectedInstruction, ExpectedStack, SubmittedRevision, TargetReason};
use crate::scenario::{Activation, LabelTarget, StackAnnotation, Submit};
use crate::wall_clock::wall_time;

/// Most attempts of one call to a broker that does not respond.
const ATTEMPTS_MAX: u32 = 120;
/// Wait between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

impl Interpreter<'_> {
    /// Calls the broker until it responds.
    pub(super) fn ask_broker<T, F>(
        &mut self,
        call: impl Fn(Client) -> F + Clone + Send + Sync + 'static,
    ) -> Result<T, StepError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        let response = call_broker(self.environment, move |client| async move {
            let mut attempts = 0;
            loop {
                match call(client.clone()).await {
                    Err(error) if error.is_transient() && attempts < ATTEMPTS_MAX => attempts += 1,
                    response => return response,
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        })?;
        response.map_err(|error| {
            let message = error.to_string();
            if error.is_transient() { StepError::Failed(message) } else { StepError::Rejected(message) }
        })
    }

    /// Records an instruction about a stack, and then calls the broker: an agent may act on the instruction before the
    /// operator has the response. A rejected instruction is taken back.
    fn instruct<T>(
        &mut self,
        name: &str,
        instruction: impl FnOnce(&mut ExpectedStack),
        call: impl FnOnce(&mut Self) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let before = self.read_stack(name, ExpectedStack::clone)?;
        self.change_stack(name, instruction)?;
        let result = call(self);
        if let Err(StepError::Rejected(_)) = result {
            self.change_stack(name, |stack| *stack = before)?;
        }
        result
    }

    pub(super) fn submit(&mut self, submit: &Submit) -> Result<(), StepError> {
        let text = self.read_text(submit.bundle.as_deref(), submit.yaml.as_deref())?;
        let newest = text.clone();
        let is_new = self.read_stack(&submit.stack, |stack| stack.is_deleted).unwrap_or(true);
        if is_new {
            self.create_stack(&submit.stack)?;
        }
        let id = self.read_stack(&submit.stack, |stack| stack.id)?;
        let instruction = ExpectedInstruction::Submit(SubmittedRevision::from_bundle(&text, wall_time()));
        let revision = self.instruct(
            &submit.stack,
            |stack| stack.instructions.push(instruction),
            |interpreter| {
                interpreter.ask_broker(move |client| {
                    let text = text.clone();
                    async move { client.submit_revision(id, &text).await }
                })
            },
        )?;
        self.change_stack(&submit.stack, |stack| {
            if let Some(ExpectedInstruction::Submit(submitted)) = stack.instructions.last_mut() {
                submitted.id = Some(revision.id);
            }
            stack.newest_text = newest;
            stack.must_be_submitted = false;
        })?;
        if self.read_stack(&submit.stack, |stack| stack.ever_targeted.is_empty())? {
            let agents = submit.to.clone().unwrap_or_else(|| self.scenario.fleet.agents.clone());
            agents.iter().try_for_each(|agent| self.target(&submit.stack, agent))?;
        }
        Ok(())
    }

    /// Returns the text of a file or of a step.
    pub(super) fn read_text(&mut self, bundle: Option<&str>, yaml: Option<&str>) -> Result<String, StepError> {
        match (bundle, yaml) {
            (Some(bundle), _) => self.library.bundle(bundle).map_err(StepError::Failed),
            (None, Some(yaml)) => self.substitute(yaml),
            (None, None) => Err(StepError::Failed("the step takes either a bundle or a yaml".to_owned())),
        }
    }

    fn create_stack(&mut self, name: &str) -> Result<(), StepError> {
        let generator_id = self.generator_id()?;
        let new_stack = NewStack { name: name.to_owned(), description: None, generator_id };
        let stack = self.ask_broker(move |client| {
            let new_stack = new_stack.clone();
            async move {
                // An earlier attempt may have been carried out although its response was lost.
                let existing = client.list_stacks().await?.into_iter().find(|stack| stack.name == new_stack.name);
                match existing {
                    Some(stack) => Ok(stack),
                    None => client.create_stack(&new_stack).await,
                }
            }
        })?;
        let mut expected = self.expected.borrow_mut();
        if let Some(deleted) = expected.stacks.insert(name.to_owned(), ExpectedStack::new(stack.id)) {
            // The deleted stack of this name is still judged.
            expected.stacks.insert(format!("{name} {}", deleted.id), deleted);
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, name: &str) -> Result<(), StepError> {
        let id = self.read_stack(name, |stack| stack.id)?;
        self.instruct(name, ExpectedStack::delete, |interpreter| {
            interpreter.ask_broker(move |client| async move { ignore_not_found(client.delete_stack(id).await) })
        })
    }

    pub(super) fn target(&mut self, name: &str, agent: &str) -> Result<(), StepError> {
        let (stack, id) = (self.read_stack(name, |stack| stack.id)?, self.agent_id(agent)?);
        let call = move |client: Client| async move { ignore_conflict(client.add_target(id, stack).await.map(drop)) };
        self.instruct(name, |stack| stack.target(agent, TargetReason::Id), |interpreter| interpreter.ask_broker(call))
    }

    pub(super) fn untarget(&mut self, name: &str, agent: &str) -> Result<(), StepError> {
        let (stack, id) = (self.read_stack(name, |stack| stack.id)?, self.agent_id(agent)?);
        let call = move |client: Client| async move { ignore_not_found(client.remove_target(id, stack).await) };
        self.instruct(
            name,
            |stack| stack.untarget(agent, &TargetReason::Id),
            |interpreter| interpreter.ask_broker(call),
        )
    }

    pub(super) fn label(&mut self, LabelTarget { stack: name, agent, label }: &LabelTarget) -> Result<(), StepError> {
        let (stack, id) = (self.read_stack(name, |stack| stack.id)?, self.agent_id(agent)?);
        let (label, reason) = (label.clone(), TargetReason::Label(label.clone()));
        let call = move |client: Client| {
            let label = label.clone();
            async move {
                ignore_conflict(client.label_stack(stack, &label).await.map(drop))?;
                ignore_conflict(client.label_agent(id, &label).await.map(drop))
            }
        };
        self.instruct(name, |stack| stack.target(agent, reason), |interpreter| interpreter.ask_broker(call))
    }

    pub(super) fn unlabel(&mut self, LabelTarget { stack: name, agent, label }: &LabelTarget) -> Result<(), StepError> {
        let id = self.agent_id(agent)?;
        let (label, reason) = (label.clone(), TargetReason::Label(label.clone()));
        let call = move |client: Client| {
            let label = label.clone();
            async move { ignore_not_found(client.unlabel_agent(id, &label).await) }
        };
        self.instruct(name, |stack| stack.untarget(agent, &reason), |interpreter| interpreter.ask_broker(call))
    }

    pub(super) fn annotate(&mut self, annotation: &StackAnnotation) -> Result<(), StepError> {
        let id = self.read_stack(&annotation.stack, |stack| stack.id)?;
        let (key, value) = (annotation.key.clone(), annotation.value.clone());
        let (recorded_key, recorded_value) = (key.clone(), value.clone());
        let call = move |client: Client| {
            let (key, value) = (key.clone(), value.clone());
            async move {
                ignore_not_found(client.remove_stack_annotation(id, &key).await)?;
                match &value {
                    Some(value) => ignore_conflict(client.annotate_stack(id, &key, value).await.map(drop)),
                    None => Ok(()),
                }
            }
        };
        self.instruct(
            &annotation.stack,
            |stack| stack.set_policy(recorded_key, recorded_value),
            |interpreter| interpreter.ask_broker(call),
        )
    }

    /// Decides every pending approval of a stack.
    pub(super) fn decide_approvals(&mut self, name: &str, is_approved: bool) -> Result<(), StepError> {
        let id = self.read_stack(name, |stack| stack.id)?;
        let pending = self.list_pending_approvals()?;
        let mut pending: Vec<Approval> = pending.into_iter().filter(|approval| approval.stack_id == id).collect();
        if self.scenario.world && !is_approved {
            // To submit again takes back the rejection of a revision; nothing takes back that of a removal.
            let newest =
                self.read_stack(name, |stack| stack.revisions().next_back().and_then(|revision| revision.id))?;
            let is_removed = self.read_stack(name, |stack| stack.is_deleted)?;
            pending.retain(|approval| !is_removed && Some(approval.deployment_object_id) == newest);
        }
        let missing = || format!("stack {name} has no pending approval");
        match pending.len() {
            0 if self.scenario.world => Err(StepError::Rejected(missing())),
            0 => Err(StepError::violation("expect", missing())),
            _ => {
                self.change_stack(name, |stack| stack.must_be_submitted |= !is_approved)?;
                pending.into_iter().try_for_each(|approval| self.decide(approval, is_approved))
            }
        }
    }

    /// Submits the newest revision of every stack that must be submitted again.
    pub(super) fn submit_again(&mut self) -> Result<(), StepError> {
        let outdated: Vec<(String, String)> = {
            let expected = self.expected.borrow();
            let living = expected.stacks.iter().filter(|(_, stack)| stack.must_be_submitted && !stack.is_deleted);
            let submitted = living.filter(|(_, stack)| !stack.newest_text.is_empty());
            submitted.map(|(name, stack)| (name.clone(), stack.newest_text.clone())).collect()
        };
        outdated
            .into_iter()
            .try_for_each(|(stack, text)| self.submit(&Submit { stack, bundle: None, yaml: Some(text), to: None }))
    }

    pub(super) fn list_pending_approvals(&mut self) -> Result<Vec<Approval>, StepError> {
        self.ask_broker(|client| async move { client.list_approvals(Some(ApprovalState::Pending)).await })
    }

    pub(super) fn decide(&mut self, approval: Approval, is_approved: bool) -> Result<(), StepError> {
        if is_approved {
            let plan = format!("{}\n{}", approval.reasons.join("\n"), approval.plan);
            self.expected.borrow_mut().approved.push(plan);
        }
        self.ask_broker(move |client| async move {
            let decision =
                if is_approved { client.approve(approval.id).await } else { client.reject(approval.id).await };
            // A conflict: the agent has asked for something else in the meantime.
            ignore_conflict(decision.map(drop))
        })
    }

    pub(super) fn delete_agent(&mut self, name: &str) -> Result<(), StepError> {
        let id = self.agent_id(name)?;
        self.expected.borrow_mut().stacks.values_mut().for_each(|stack| stack.lose_agent(name));
        self.ask_broker(move |client| async move { ignore_not_found(client.delete_agent(id).await) })
    }

    pub(super) fn create_agent(&mut self, name: &str) -> Result<(), StepError> {
        let generator = self.generator_id()?;
        let agent = name.to_owned();
        self.expected.borrow_mut().stacks.values_mut().for_each(|stack| stack.lose_agent(name));
        let created = self.ask_broker(move |client| {
            let agent = agent.clone();
            async move {
                // An earlier attempt may have been carried out although its response, and with it the key, was lost.
                match client.find_agent(&agent, &agent).await {
                    Ok(found) => client.delete_agent(found.id).await?,
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
                register_agent(&client, &agent, generator).await
            }
        })?;
        self.expected.borrow_mut().agents.insert(name.to_owned(), created.agent.id);
        self.environment.replace_key(name, created.initial_pak)
    }

    pub(super) fn activate(&mut self, activation: &Activation) -> Result<(), StepError> {
        let id = self.agent_id(&activation.agent)?;
        let status = if activation.active { AgentStatus::Active } else { AgentStatus::Inactive };
        let changes = UpdateAgentRequest { status: Some(status), ..UpdateAgentRequest::default() };
        self.ask_broker(move |client| {
            let changes = changes.clone();
            async move { client.update_agent(id, &changes).await.map(drop) }
        })
    }
}

/// Accepts a conflict: an earlier attempt was carried out although its response was lost.
fn ignore_conflict(result: Result<(), ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error) if error.status() == Some(http::StatusCode::CONFLICT) => Ok(()),
        other => other,
    }
}

/// Accepts a missing object: an earlier attempt deleted it although its response was lost.
fn ignore_not_found(result: Result<(), ClientError>) -> Result<(), ClientError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}
