//! `sindri target` and `sindri untarget`: assign stacks to agents.

use clap::Args;
use http::StatusCode;
use sindri_client::ClientError;
use sindri_model::wire::{Agent, Stack};

use crate::commands::labels::accept_existing;
use crate::commands::losses::is_assigned_by_label;
use crate::commands::removal::keeps_objects;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of the stack.
    stack: String,
    /// Name or id of the agent.
    agent: String,
}

#[derive(Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    assignment: Arguments,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// Succeeds if the target exists already.
pub(crate) async fn add(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let agent = names::find_agent(&session.client, &arguments.agent).await?;
    assign(session, &stack, &agent).await?;
    session.output.print_change(&stack, &format!("stack {} is assigned to agent {}", stack.name, agent.name))
}

/// Assigns a stack to an agent, and registers the agent with the stack's generator if necessary.
pub(crate) async fn assign(session: &Session, stack: &Stack, agent: &Agent) -> Result<(), Failure> {
    let client = &session.client;
    match client.add_target(agent.id, stack.id).await {
        Err(error) if is_unregistered(&error) => {
            let registered = client.register_agent(stack.generator_id, agent.id).await;
            if let Err(error) = &registered
                && error.status() == Some(StatusCode::FORBIDDEN)
            {
                return Err(unregistered(stack, agent));
            }
            accept_existing(registered)?;
            accept_existing(client.add_target(agent.id, stack.id).await)
        }
        other => accept_existing(other),
    }
}

/// Checks before a submission that [`assign`] may assign the stack to these agents: the key of a generator cannot register them.
pub(crate) async fn check_registrations(session: &Session, stack: &Stack, agents: &[Agent]) -> Result<(), Failure> {
    if agents.is_empty() || session.client.whoami().await?.generator.is_none() {
        return Ok(());
    }
    let registered = session.client.list_registrations(stack.generator_id).await?;
    let is_missing = |agent: &&Agent| registered.iter().all(|registration| registration.agent_id != agent.id);
    agents.iter().find(is_missing).map_or(Ok(()), |agent| Err(unregistered(stack, agent)))
}

fn unregistered(stack: &Stack, agent: &Agent) -> Failure {
    Failure::Usage(format!(
        "agent {} is not registered with the generator of stack {}: an administrator registers it with sindri generator \
         register {} {}",
        agent.name, stack.name, stack.generator_id, agent.name
    ))
}

pub(crate) async fn remove(session: &Session, arguments: &Remove) -> Result<(), Failure> {
    let client = &session.client;
    let stack = names::find_stack(client, &arguments.assignment.stack).await?;
    let agent = names::find_agent(client, &arguments.assignment.agent).await?;
    let (effect, result) = describe_removal(session, &stack, &agent).await?;
    let question = format!("Remove stack {} from agent {}? The agent {effect}.", stack.name, agent.name);
    arguments.confirmation.ask(session, &question)?;
    match client.remove_target(agent.id, stack.id).await {
        Err(error) if error.is_not_found() => {
            return Err(Failure::Usage(format!("stack {} is not assigned to agent {}", stack.name, agent.name)));
        }
        other => other?,
    }
    let sentence = format!("stack {} is no longer assigned to agent {}, which {result}", stack.name, agent.name);
    session.output.print_change(&stack, &sentence)
}

/// Describes the effect of the end of an assignment, for the question and for the sentence after it.
async fn describe_removal(
    session: &Session,
    stack: &Stack,
    agent: &Agent,
) -> Result<(&'static str, &'static str), Failure> {
    if is_assigned_by_label(session, stack, agent).await? {
        return Ok((
            "keeps it, because it has the stack by a label or an annotation too",
            "has it by a label or an annotation still",
        ));
    }
    let keeps = "keeps its objects, without their owner";
    let removes = "removes its objects";
    Ok(if keeps_objects(session, stack).await? { (keeps, keeps) } else { (removes, removes) })
}

fn is_unregistered(error: &ClientError) -> bool {
    matches!(error, ClientError::Rejected { problem, .. } if problem.code == "agent_not_registered")
}
