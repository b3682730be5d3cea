//! `sindri agent`: create, activate, deactivate, delete and list agents.

use clap::Subcommand;
use sindri_client::Client;
use sindri_model::wire::{Agent, AgentStatus, CreateAgentRequest, UpdateAgentRequest};

use crate::failure::Failure;
use crate::names;
use crate::output::{print, print_or_fail};
use crate::table::format_table;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create an agent and print its key, which cannot be printed again.
    Create {
        /// Name of the agent.
        name: String,
        /// Name of its cluster.
        #[arg(long)]
        cluster: String,
    },
    /// Let an agent apply its target state.
    Activate {
        /// Name or id of the agent.
        agent: String,
    },
    /// Stop an agent from changing its cluster; it still sends heartbeats.
    Deactivate {
        /// Name or id of the agent.
        agent: String,
    },
    /// Delete an agent. Its key becomes invalid and the objects in its cluster stay; a new agent with the same name and
    /// cluster takes them over.
    Delete {
        /// Name or id of the agent.
        agent: String,
    },
    /// List the agents.
    List,
}

pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, cluster } => create(client, name, cluster).await,
        Command::Activate { agent } => set_status(client, &agent, AgentStatus::Active).await,
        Command::Deactivate { agent } => set_status(client, &agent, AgentStatus::Inactive).await,
        Command::Delete { agent } => delete(client, &agent).await,
        Command::List => list(client).await,
    }
}

async fn create(client: &Client, name: String, cluster_name: String) -> Result<(), Failure> {
    let created = client
        .create_agent(&CreateAgentRequest { name, cluster_name, generator_ids: None, key_expires_at: None })
        .await?;
    let (agent, key) = (created.agent, created.initial_pak);
    print_or_fail(&format!("agent {} ({})\nkey, shown only once: {key}\n", agent.name, agent.id))
}

async fn set_status(client: &Client, agent: &str, status: AgentStatus) -> Result<(), Failure> {
    let agent = names::find_agent(client, agent).await?;
    let changes = UpdateAgentRequest { status: Some(status), ..UpdateAgentRequest::default() };
    let agent = client.update_agent(agent.id, &changes).await?;
    print(&format!("agent {} is {}\n", agent.name, status_name(agent.status)))
}

async fn delete(client: &Client, agent: &str) -> Result<(), Failure> {
    let agent = names::find_agent(client, agent).await?;
    client.delete_agent(agent.id).await?;
    print(&format!(
        "agent {} of cluster {} is deleted; the objects in its cluster stay\n",
        agent.name, agent.cluster_name
    ))
}

async fn list(client: &Client) -> Result<(), Failure> {
    let rows: Vec<_> = client.list_agents().await?.iter().map(format_row).collect();
    print(&format_table(["NAME", "CLUSTER", "STATUS", "LAST HEARTBEAT", "ID"], &rows))
}

fn format_row(agent: &Agent) -> [String; 5] {
    let heartbeat = agent.last_heartbeat.map_or_else(|| "never".to_owned(), |time| time.to_string());
    let (name, cluster) = (agent.name.clone(), agent.cluster_name.clone());
    [name, cluster, status_name(agent.status).to_owned(), heartbeat, agent.id.to_string()]
}

fn status_name(status: AgentStatus) -> &'static str {
    match status {
        AgentStatus::Active => "active",
        AgentStatus::Inactive => "inactive",
    }
}
