//! `sindri stack create`, `suspend`, `resume` and `release`, and `sindri delete`.

use clap::{Args, Subcommand};
use sindri_client::Client;
use sindri_model::policy::{REMOVAL_ANNOTATION, SUSPEND_ANNOTATION};
use sindri_model::wire::{NewGenerator, NewStack};
use sindri_model::{GeneratorId, StackId};

use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::output::print_or_fail;
use crate::session::Session;

/// Generator that is created for operators who do not use generators.
const DEFAULT_GENERATOR: &str = "default";

#[derive(Args)]
pub(crate) struct Delete {
    /// Name or id of the stack.
    stack: String,
    #[command(flatten)]
    confirmation: Confirmation,
}

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

pub(crate) async fn run(session: &Session, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, generator } => create(session, name, generator.as_deref()).await,
        Command::Suspend { stack, agents } => suspend(session, &stack, &agents).await,
        Command::Resume { stack } => resume(session, &stack).await,
        Command::Release { stack } => release(session, &stack).await,
    }
}

async fn create(session: &Session, name: String, generator: Option<&str>) -> Result<(), Failure> {
    let generator_id = find_or_create_generator(session, generator).await?;
    let stack = session.client.create_stack(&NewStack { name, description: None, generator_id }).await?;
    session.output.print_change(&stack, &format!("stack {} ({})", stack.name, stack.id))
}

async fn suspend(session: &Session, stack: &str, agents: &[String]) -> Result<(), Failure> {
    let client = &session.client;
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
    let sentence =
        format!("stack {} is suspended on {place}: nothing of it is written, and drift is reported", stack.name);
    session.output.print_change(&stack, &sentence)
}

async fn resume(session: &Session, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, stack).await?;
    set_annotation(&session.client, stack.id, SUSPEND_ANNOTATION, None).await?;
    session.output.print_change(&stack, &format!("stack {} is written again on every cluster", stack.name))
}

async fn release(session: &Session, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, stack).await?;
    set_annotation(&session.client, stack.id, REMOVAL_ANNOTATION, Some("release")).await?;
    session.client.delete_stack(stack.id).await?;
    let sentence =
        format!("stack {} is deleted; each agent that received it keeps its objects, without their owner", stack.name);
    session.output.print_change(&stack, &sentence)
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
async fn find_or_create_generator(session: &Session, requested: Option<&str>) -> Result<GeneratorId, Failure> {
    let client = &session.client;
    if let Some(requested) = requested {
        return Ok(names::find_generator(client, requested).await?.id);
    }
    if let Some(own) = client.whoami().await?.generator {
        return Ok(own);
    }
    let generators = client.list_generators().await?;
    match generators.iter().find(|generator| generator.name == DEFAULT_GENERATOR) {
        Some(generator) => Ok(generator.id),
        None => create_default_generator(session).await,
    }
}

async fn create_default_generator(session: &Session) -> Result<GeneratorId, Failure> {
    let name = DEFAULT_GENERATOR;
    let request = NewGenerator { name: name.to_owned(), description: None, key_expires_at: None };
    let created = session.client.create_generator(&request).await?;
    let id = created.generator.id;
    if session.output.format.is_for_people() {
        print_or_fail(&format!("generator {name} ({id}), key, shown only once: {}\n", created.pak))?;
    } else {
        eprintln!("generator {name} ({id}) is created; sindri generator rotate-key {name} shows a key of it");
    }
    Ok(id)
}

pub(crate) async fn delete(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let question = format!("Delete stack {}? Each agent that received it removes its objects.", stack.name);
    arguments.confirmation.ask(&question)?;
    session.client.delete_stack(stack.id).await?;
    let sentence = format!("stack {} is deleted; each agent that received it removes its objects", stack.name);
    session.output.print_change(&stack, &sentence)
}
