//! `sindri generator`: the clients that own stacks, such as CI.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use sindri_model::wire::{NewGenerator, UpdateGeneratorRequest};

use crate::commands::labels::accept_existing;
use crate::commands::losses::{find_stacks, join_names};
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::new_key::{KeyDestination, Rotation};
use crate::resources::GeneratorDetails;
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the generators that the key may read.
    List,
    /// Show one generator with the agents that are registered with it.
    Show(Generator),
    /// Create a generator and print its key, which cannot be printed again.
    Create(Create),
    /// Let a generator submit and change its stacks again.
    Activate(Generator),
    /// Stop a generator from changing anything; its key still reads, and its stacks stay as they are.
    Deactivate(Generator),
    /// Replace the key of a generator and print the new one, which cannot be printed again.
    RotateKey(RotateKey),
    /// Register an agent with a generator, whose stacks may then be assigned to the agent.
    Register(Registration),
    /// Remove the registration of an agent with a generator.
    Unregister(Unregister),
    /// Delete a generator, its key and its stacks; every agent that received them removes their objects.
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Generator {
    /// Name or id of the generator.
    generator: String,
}

#[derive(Args)]
pub(crate) struct Create {
    /// Name of the generator.
    name: String,
    /// Description for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Name or id of an agent to register with it; may be repeated.
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<String>,
    /// Time from which the key is invalid, such as 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct RotateKey {
    #[command(flatten)]
    generator: Generator,
    #[command(flatten)]
    rotation: Rotation,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct Registration {
    #[command(flatten)]
    generator: Generator,
    /// Name or id of the agent.
    agent: String,
}

#[derive(Args)]
pub(crate) struct Unregister {
    #[command(flatten)]
    registration: Registration,
    #[command(flatten)]
    confirmation: Confirmation,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    generator: Generator,
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => session.output.print_list(&names::list_generators(&session.client).await?),
        Command::Show(arguments) => show(session, &arguments.generator).await,
        Command::Create(arguments) => create(session, arguments).await,
        Command::Activate(arguments) => set_active(session, &arguments.generator, true).await,
        Command::Deactivate(arguments) => set_active(session, &arguments.generator, false).await,
        Command::RotateKey(arguments) => rotate_key(session, &arguments).await,
        Command::Register(arguments) => register(session, &arguments).await,
        Command::Unregister(arguments) => unregister(session, &arguments).await,
        Command::Delete(arguments) => delete(session, &arguments).await,
    }
}

async fn show(session: &Session, generator: &str) -> Result<(), Failure> {
    let client = &session.client;
    let generator = names::find_generator(client, generator).await?;
    let registered: Vec<_> = client.list_registrations(generator.id).await?;
    let is_registered = |id| registered.iter().any(|registration| registration.agent_id == id);
    let agents = client.list_agents().await?.into_iter().filter(|agent| is_registered(agent.id));
    let registered_agents = agents.map(|agent| agent.name).collect();
    session.output.print_object(&GeneratorDetails { generator, registered_agents })
}

async fn create(session: &Session, arguments: Create) -> Result<(), Failure> {
    let client = &session.client;
    let mut agents = Vec::new();
    for agent in &arguments.agents {
        agents.push(names::find_agent(client, agent).await?.id);
    }
    let printer = arguments.key.prepare(session.output)?;
    let Create { name, description, expires_at: key_expires_at, .. } = arguments;
    let created = client.create_generator(&NewGenerator { name, description, key_expires_at }).await?;
    let generator = created.generator;
    printer.print(&generator, &format!("generator {} ({})", generator.name, generator.id), &created.pak)?;
    for agent in agents {
        client.register_agent(generator.id, agent).await?;
    }
    Ok(())
}

async fn set_active(session: &Session, generator: &str, is_active: bool) -> Result<(), Failure> {
    let generator = names::find_generator(&session.client, generator).await?;
    let changes = UpdateGeneratorRequest { is_active: Some(is_active), ..UpdateGeneratorRequest::default() };
    let changed = session.client.update_generator(generator.id, &changes).await?;
    let state = if changed.is_active { "active" } else { "inactive" };
    session.output.print_change(&changed, &format!("generator {} is {state}", changed.name))
}

async fn rotate_key(session: &Session, arguments: &RotateKey) -> Result<(), Failure> {
    let generator = names::find_generator(&session.client, &arguments.generator.generator).await?;
    let printer = arguments.key.prepare(session.output)?;
    let rotated = session.client.rotate_generator_key(generator.id, &arguments.rotation.to_request()).await?;
    arguments.rotation.note_end();
    printer.print(&rotated.generator, &format!("generator {} has a new key", generator.name), &rotated.pak)
}

async fn register(session: &Session, arguments: &Registration) -> Result<(), Failure> {
    let client = &session.client;
    let generator = names::find_generator(client, &arguments.generator.generator).await?;
    let agent = names::find_agent(client, &arguments.agent).await?;
    accept_existing(client.register_agent(generator.id, agent.id).await)?;
    let sentence = format!("agent {} is registered with generator {}", agent.name, generator.name);
    session.output.print_change(&generator, &sentence)
}

async fn unregister(session: &Session, arguments: &Unregister) -> Result<(), Failure> {
    let (client, Unregister { registration, confirmation }) = (&session.client, arguments);
    let generator = names::find_generator(client, &registration.generator.generator).await?;
    let agent = names::find_agent(client, &registration.agent).await?;
    if confirmation.is_asked() {
        let lost = find_stacks(session, &agent, async |stack| Ok(stack.generator_id == generator.id)).await?;
        if !lost.is_empty() {
            let (name, owner, lost) = (&agent.name, &generator.name, join_names(&lost));
            confirmation.ask(
                session,
                &format!("Unregister agent {name} from generator {owner}? It removes the stacks that it has by labels: {lost}."),
            )?;
        }
    }
    client.unregister_agent(generator.id, agent.id).await?;
    let sentence = format!("agent {} is no longer registered with generator {}", agent.name, generator.name);
    session.output.print_change(&generator, &sentence)
}

async fn delete(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let generator = names::find_generator(&session.client, &arguments.generator.generator).await?;
    let question = format!(
        "Delete generator {} and all its stacks? Each agent that received them removes their objects.",
        generator.name
    );
    arguments.confirmation.ask(session, &question)?;
    session.client.delete_generator(generator.id).await?;
    let sentence = format!("generator {} and its stacks are deleted; agents remove their objects", generator.name);
    session.output.print_change(&generator, &sentence)
}
