//! `sindri stack create`, `suspend`, `resume` and `release`, and `sindri delete`.

use clap::Subcommand;
use sindri_client::Client;
use sindri_model::policy::{REMOVAL_ANNOTATION, SUSPEND_ANNOTATION};
use sindri_model::wire::{NewGenerator, NewStack};
use sindri_model::{GeneratorId, StackId};

use crate::failure::Failure;
use crate::names;
use crate::output::{print, print_or_fail};

/// Generator that is created for operators who do not use generators.
const DEFAULT_GENERATOR: &str = "default";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a stack.
    Create {
        /// Name of the stack.
        name: String,
        /// Name or id of the generator that owns the stack; by default "default", which is created if it does not exist.
        #[arg(long)]
        generator: Option<String>,
    },
    /// Stop writing a stack; its drift is still reported.
    Suspend {
        /// Name or id of the stack.
        stack: String,
        /// Name or id of an agent, to suspend the stack on its cluster only; may be repeated.
        #[arg(long = "agent", value_name = "AGENT")]
        agents: Vec<String>,
    },
    /// Write a suspended stack again, on every cluster.
    Resume {
        /// Name or id of the stack.
        stack: String,
    },
    /// Delete a stack and keep its objects, which then belong to no stack.
    Release {
        /// Name or id of the stack.
        stack: String,
    },
}

pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, generator } => {
            let generator_id = find_or_create_generator(client, generator.as_deref()).await?;
            let stack = client.create_stack(&NewStack { name, description: None, generator_id }).await?;
            print(&format!("stack {} ({})\n", stack.name, stack.id))
        }
        Command::Suspend { stack, agents } => suspend(client, &stack, &agents).await,
        Command::Resume { stack } => resume(client, &stack).await,
        Command::Release { stack } => release(client, &stack).await,
    }
}

async fn suspend(client: &Client, stack: &str, agents: &[String]) -> Result<(), Failure> {
    let stack = names::find_stack(client, stack).await?;
    let mut suspended = Vec::new();
    for agent in agents {
        suspended.push(names::find_agent(client, agent).await?.name);
    }
    let (value, place) = match suspended.join(",") {
        names if names.is_empty() => ("true".to_owned(), "every cluster".to_owned()),
        names => (names.clone(), format!("the clusters of {names}")),
    };
    set_annotation(client, stack.id, SUSPEND_ANNOTATION, Some(&value)).await?;
    print(&format!("stack {} is suspended on {place}: nothing of it is written, and drift is reported\n", stack.name))
}

async fn resume(client: &Client, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(client, stack).await?;
    set_annotation(client, stack.id, SUSPEND_ANNOTATION, None).await?;
    print(&format!("stack {} is written again on every cluster\n", stack.name))
}

async fn release(client: &Client, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(client, stack).await?;
    set_annotation(client, stack.id, REMOVAL_ANNOTATION, Some("release")).await?;
    client.delete_stack(stack.id).await?;
    print(&format!(
        "stack {} is deleted; each agent that received it keeps its objects, without their owner\n",
        stack.name
    ))
}

/// Sets an annotation of a stack, or removes it.
async fn set_annotation(client: &Client, stack: StackId, key: &str, value: Option<&str>) -> Result<(), Failure> {
    match client.remove_stack_annotation(stack, key).await {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    if let Some(value) = value {
        client.annotate_stack(stack, key, value).await?;
    }
    Ok(())
}

/// Returns the id of the generator with the name or id `requested`. Without one, returns the key's own generator, or
/// for an administrator the default generator, which is created if it does not exist.
async fn find_or_create_generator(client: &Client, requested: Option<&str>) -> Result<GeneratorId, Failure> {
    if let (None, Some(own)) = (requested, client.whoami().await?.generator) {
        return Ok(own);
    }
    let generators = client.list_generators().await?;
    let name = requested.unwrap_or(DEFAULT_GENERATOR);
    let found = generators.iter().find(|generator| generator.name == name || generator.id.to_string() == name);
    match (found, requested) {
        (Some(generator), _) => Ok(generator.id),
        (None, Some(requested)) => Err(Failure::Usage(format!("there is no generator {requested}"))),
        (None, None) => {
            let created = client
                .create_generator(&NewGenerator { name: name.to_owned(), description: None, key_expires_at: None })
                .await?;
            print_or_fail(&format!(
                "generator {name} ({}), key, shown only once: {}\n",
                created.generator.id, created.pak
            ))?;
            Ok(created.generator.id)
        }
    }
}

pub(crate) async fn delete(client: &Client, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(client, stack).await?;
    client.delete_stack(stack.id).await?;
    print(&format!("stack {} is deleted; each agent that received it removes its objects\n", stack.name))
}
