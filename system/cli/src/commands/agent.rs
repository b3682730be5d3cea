//! `sindri agent`: agents, one per cluster.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use sindri_model::wire::{AgentStatus, CreateAgentRequest, UpdateAgentRequest};

use crate::commands::agent_labels;
use crate::commands::labels::{AnnotationKeys, Annotations, Labels, RemovedLabels, accept_forbidden, sort};
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::new_key::{KeyDestination, Rotation};
use crate::resources::AgentDetails;
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the agents that the key may read.
    List,
    /// Show one agent with its labels and annotations.
    Show(Agent),
    /// Create an agent and print its key, which cannot be printed again.
    Create(Create),
    /// Let an agent apply its target state.
    Activate(Agent),
    /// Stop an agent from changing its cluster; it still sends heartbeats.
    Deactivate(Agent),
    /// Add labels. The agent receives each stack with one of its labels.
    Label(Labels),
    /// Remove labels. The agent removes the stacks that it had by them.
    Unlabel(RemovedLabels),
    /// Add annotations. The agent receives each stack with one of its annotations.
    Annotate(Annotations),
    /// Remove annotations. The agent removes the stacks that it had by them.
    Unannotate(AnnotationKeys),
    /// Replace the key of an agent and print the new one, which cannot be printed again.
    RotateKey(RotateKey),
    /// Delete an agent. Its key becomes invalid and the objects in its cluster stay; a new agent with the same name and
    /// cluster takes them over.
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Agent {
    /// Name or id of the agent.
    agent: String,
}

#[derive(Args)]
pub(crate) struct Create {
    /// Name of the agent.
    name: String,
    /// Name of its cluster.
    #[arg(long)]
    cluster: String,
    /// Time from which the key is invalid, such as 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct RotateKey {
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    rotation: Rotation,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => session.output.print_list(&names::list_agents(&session.client).await?),
        Command::Show(arguments) => show(session, &arguments.agent).await,
        Command::Create(arguments) => create(session, arguments).await,
        Command::Activate(arguments) => set_status(session, &arguments.agent, AgentStatus::Active).await,
        Command::Deactivate(arguments) => set_status(session, &arguments.agent, AgentStatus::Inactive).await,
        Command::Label(arguments) => agent_labels::label(session, &arguments).await,
        Command::Unlabel(arguments) => agent_labels::unlabel(session, &arguments).await,
        Command::Annotate(arguments) => agent_labels::annotate(session, &arguments).await,
        Command::Unannotate(arguments) => agent_labels::unannotate(session, &arguments).await,
        Command::RotateKey(arguments) => rotate_key(session, &arguments).await,
        Command::Delete(arguments) => delete(session, &arguments).await,
    }
}

async fn show(session: &Session, agent: &str) -> Result<(), Failure> {
    let client = &session.client;
    let agent = names::find_agent(client, agent).await?;
    let labels = accept_forbidden(client.list_agent_labels(agent.id).await)?;
    let annotations = accept_forbidden(client.list_agent_annotations(agent.id).await)?;
    let labels = labels.map(|labels| sort(labels.into_iter().map(|label| label.label)));
    let annotations = annotations
        .map(|annotations| annotations.into_iter().map(|annotation| (annotation.key, annotation.value)).collect());
    session.output.print_object(&AgentDetails { agent, labels, annotations })
}

async fn rotate_key(session: &Session, arguments: &RotateKey) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, &arguments.agent.agent).await?;
    let printer = arguments.key.prepare(session.output)?;
    let rotated = session.client.rotate_agent_key(agent.id, &arguments.rotation.to_request()).await?;
    arguments.rotation.note_end();
    printer.print(&rotated.agent, &format!("agent {} has a new key", agent.name), &rotated.pak)
}

async fn create(session: &Session, arguments: Create) -> Result<(), Failure> {
    let printer = arguments.key.prepare(session.output)?;
    let Create { name, cluster: cluster_name, expires_at: key_expires_at, .. } = arguments;
    let request = CreateAgentRequest { name, cluster_name, generator_ids: None, key_expires_at };
    let created = session.client.create_agent(&request).await?;
    let sentence = format!("agent {} ({})", created.agent.name, created.agent.id);
    printer.print(&created.agent, &sentence, &created.initial_pak)
}

async fn set_status(session: &Session, agent: &str, status: AgentStatus) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, agent).await?;
    let changes = UpdateAgentRequest { status: Some(status), ..UpdateAgentRequest::default() };
    let agent = session.client.update_agent(agent.id, &changes).await?;
    let status = match agent.status {
        AgentStatus::Active => "active",
        AgentStatus::Inactive => "inactive",
    };
    session.output.print_change(&agent, &format!("agent {} is {status}", agent.name))
}

async fn delete(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, &arguments.agent.agent).await?;
    let (name, cluster) = (&agent.name, &agent.cluster_name);
    arguments.confirmation.ask(
        session,
        &format!("Delete agent {name} of cluster {cluster}? Its key becomes invalid; its objects stay."),
    )?;
    session.client.delete_agent(agent.id).await?;
    let sentence = format!("agent {name} of cluster {cluster} is deleted; the objects in its cluster stay");
    session.output.print_change(&agent, &sentence)
}
