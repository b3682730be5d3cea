//! `sindri stack` and `sindri delete`.

use clap::{Args, Subcommand};
use sindri_model::GeneratorId;
use sindri_model::policy::REMOVAL_ANNOTATION;
use sindri_model::wire::{NewGenerator, NewStack};

use crate::commands::labels::{AnnotationKeys, Annotations, Labels, RemovedLabels, sort};
use crate::commands::removal::keeps_objects;
use crate::commands::stack_labels;
use crate::commands::suspension::{self, Resume, Suspend};
use crate::commands::target;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::output::note;
use crate::resources::StackDetails;
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
    /// List the stacks that the key may read.
    List,
    /// Show one stack with its labels and annotations.
    Show(Stack),
    /// Create a stack.
    Create(Create),
    /// Add labels. Each agent with one of them receives the stack.
    Label(Labels),
    /// Remove labels. Agents that had the stack by them remove it.
    Unlabel(RemovedLabels),
    /// Add annotations, which set policies or assign the stack to agents that have them too.
    Annotate(Annotations),
    /// Remove annotations.
    Unannotate(AnnotationKeys),
    /// Assign a stack to an agent, as `sindri target`.
    Target(target::Arguments),
    /// Remove a stack from an agent, which then removes its objects, as `sindri untarget`.
    Untarget(target::Remove),
    /// Stop writing a stack; its drift is still reported.
    Suspend(Suspend),
    /// Write a suspended stack again, on every cluster.
    Resume(Resume),
    /// Delete a stack and keep its objects, which then belong to no stack.
    Release(Delete),
    /// Delete a stack; every agent that received it removes its objects. `sindri delete` is the same.
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Stack {
    /// Name or id of the stack.
    stack: String,
}

#[derive(Args)]
pub(crate) struct Create {
    /// Name of the stack.
    name: String,
    /// Name or id of the generator that owns the stack; by default that of the key, or "default" for an administrator,
    /// which is created if it does not exist.
    #[arg(long)]
    generator: Option<String>,
    /// Description for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => session.output.print_list(&session.client.list_stacks().await?),
        Command::Show(arguments) => show(session, &arguments.stack).await,
        Command::Create(arguments) => create(session, arguments).await,
        Command::Label(arguments) => stack_labels::label(session, &arguments).await,
        Command::Unlabel(arguments) => stack_labels::unlabel(session, &arguments).await,
        Command::Annotate(arguments) => stack_labels::annotate(session, &arguments).await,
        Command::Unannotate(arguments) => stack_labels::unannotate(session, &arguments).await,
        Command::Target(arguments) => target::add(session, &arguments).await,
        Command::Untarget(arguments) => target::remove(session, &arguments).await,
        Command::Suspend(arguments) => suspension::suspend(session, &arguments).await,
        Command::Resume(arguments) => suspension::resume(session, &arguments).await,
        Command::Release(arguments) => release(session, &arguments).await,
        Command::Delete(arguments) => delete(session, &arguments).await,
    }
}

async fn show(session: &Session, stack: &str) -> Result<(), Failure> {
    let client = &session.client;
    let stack = names::find_stack(client, stack).await?;
    let generator = client.get_generator(stack.generator_id).await?.name;
    let labels = sort(client.list_stack_labels(stack.id).await?.into_iter().map(|label| label.label));
    let annotations = client.list_stack_annotations(stack.id).await?.into_iter();
    let annotations = annotations.map(|annotation| (annotation.key, annotation.value)).collect();
    session.output.print_object(&StackDetails { stack, generator, labels, annotations })
}

async fn create(session: &Session, arguments: Create) -> Result<(), Failure> {
    let Create { name, generator, description } = arguments;
    let generator_id = find_or_create_generator(session, generator.as_deref()).await?;
    let stack = session.client.create_stack(&NewStack { name, description, generator_id }).await?;
    session.output.print_change(&stack, &format!("stack {} ({})", stack.name, stack.id))
}

async fn release(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let question = format!("Delete stack {}? Its objects stay in every cluster, without their owner.", stack.name);
    arguments.confirmation.ask(session, &question)?;
    session.client.set_stack_annotation(stack.id, REMOVAL_ANNOTATION, "release").await?;
    session.client.delete_stack(stack.id).await?;
    let sentence =
        format!("stack {} is deleted; each agent that received it keeps its objects, without their owner", stack.name);
    session.output.print_change(&stack, &sentence)
}

/// Returns the id of the generator with the name or id `requested`. Without one, returns the key's own generator, or
/// for an administrator the default generator, which is created if it does not exist.
pub(crate) async fn find_or_create_generator(
    session: &Session,
    requested: Option<&str>,
) -> Result<GeneratorId, Failure> {
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
    // Not the key: the output of this command may be a log of CI.
    note(&format!("generator {name} ({id}) is created; sindri generator rotate-key {name} shows a key of it"));
    Ok(id)
}

pub(crate) async fn delete(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let keeps_objects = keeps_objects(session, &stack).await?;
    let question = if keeps_objects {
        format!("Delete stack {}? Its objects stay in every cluster, without their owner.", stack.name)
    } else {
        format!("Delete stack {}? Each agent that received it removes its objects.", stack.name)
    };
    arguments.confirmation.ask(session, &question)?;
    session.client.delete_stack(stack.id).await?;
    let effect = if keeps_objects { "keeps its objects, without their owner" } else { "removes its objects" };
    let sentence = format!("stack {} is deleted; each agent that received it {effect}", stack.name);
    session.output.print_change(&stack, &sentence)
}
