//! `sindri target` and `sindri untarget`: which agent gets which stack.

use clap::Args;
use http::StatusCode;
use sindri_client::{Client, ClientError};

use crate::failure::Failure;
use crate::names;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The stack's name or id.
    stack: String,
    /// The agent's name or id.
    agent: String,
}

/// Registers the agent with the stack's generator if it is not, and is content when all is as asked.
pub(crate) async fn add(client: &Client, arguments: &Arguments) -> Result<(), Failure> {
    let stack = names::stack(client, &arguments.stack).await?;
    let agent = names::agent(client, &arguments.agent).await?;
    match client.add_target(agent.id, stack.id).await {
        Err(error) if is_unregistered(&error) => {
            already_is_fine(client.register(stack.generator_id, agent.id).await)?;
            already_is_fine(client.add_target(agent.id, stack.id).await)?;
        }
        other => already_is_fine(other)?,
    }
    print(&format!("stack {} goes to agent {}\n", stack.name, agent.name))
}

pub(crate) async fn remove(client: &Client, arguments: &Arguments) -> Result<(), Failure> {
    let stack = names::stack(client, &arguments.stack).await?;
    let agent = names::agent(client, &arguments.agent).await?;
    match client.remove_target(agent.id, stack.id).await {
        Err(error) if error.is_not_found() => {
            return Err(Failure::Mistake(format!("stack {} does not go to agent {}", stack.name, agent.name)));
        }
        other => other?,
    }
    print(&format!("stack {} no longer goes to agent {}, which removes it\n", stack.name, agent.name))
}

fn is_unregistered(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { problem, .. } if problem.code == "agent_not_registered")
}

fn already_is_fine<T>(result: Result<T, ClientError>) -> Result<(), Failure> {
    match result {
        Err(error) if error.status() == Some(StatusCode::CONFLICT) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
