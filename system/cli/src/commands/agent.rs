//! `sindri agent`: create, switch on and off, delete, list.

use clap::Subcommand;
use sindri_client::Client;
use sindri_model::wire::{Agent, AgentStatus, CreateAgentRequest, UpdateAgentRequest};

use crate::failure::Failure;
use crate::names;
use crate::output::{print, print_or_fail};
use crate::table::table;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Creates an agent and prints its key, this once.
    Create {
        /// Its name.
        name: String,
        /// The cluster it runs in.
        #[arg(long)]
        cluster: String,
    },
    /// Lets an agent act.
    Activate {
        /// Its name or id.
        agent: String,
    },
    /// Keeps an agent from acting; it goes on living.
    Deactivate {
        /// Its name or id.
        agent: String,
    },
    /// Deletes an agent: its key opens nothing any more. Its cluster stays as it is; the next agent of the same name
    /// and cluster takes over what it left there.
    Delete {
        /// Its name or id.
        agent: String,
    },
    /// Lists the agents.
    List,
}

pub(crate) async fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { name, cluster } => create(client, name, cluster).await,
        Command::Activate { agent } => switch(client, &agent, AgentStatus::Active).await,
        Command::Deactivate { agent } => switch(client, &agent, AgentStatus::Inactive).await,
        Command::Delete { agent } => delete(client, &agent).await,
        Command::List => list(client).await,
    }
}

async fn create(client: &Client, name: String, cluster_name: String) -> Result<(), Failure> {
    let made = client.create_agent(&CreateAgentRequest { name, cluster_name, generator_ids: None }).await?;
    let (agent, key) = (made.agent, made.initial_pak);
    print_or_fail(&format!("agent {} ({})\nkey, shown this once: {key}\n", agent.name, agent.id))
}

async fn switch(client: &Client, agent: &str, status: AgentStatus) -> Result<(), Failure> {
    let agent = names::agent(client, agent).await?;
    let changes = UpdateAgentRequest { status: Some(status), ..UpdateAgentRequest::default() };
    let agent = client.update_agent(agent.id, &changes).await?;
    print(&format!("agent {} is {}\n", agent.name, word(agent.status)))
}

async fn delete(client: &Client, agent: &str) -> Result<(), Failure> {
    let agent = names::agent(client, agent).await?;
    client.delete_agent(agent.id).await?;
    print(&format!("agent {} of cluster {} is deleted; nothing in the cluster is\n", agent.name, agent.cluster_name))
}

async fn list(client: &Client) -> Result<(), Failure> {
    let rows: Vec<_> = client.agents().await?.iter().map(row).collect();
    print(&table(["NAME", "CLUSTER", "STATUS", "LAST HEARTBEAT", "ID"], &rows))
}

fn row(agent: &Agent) -> [String; 5] {
    let heartbeat = agent.last_heartbeat.map_or_else(|| "never".to_owned(), |at| at.to_string());
    let (name, cluster) = (agent.name.clone(), agent.cluster_name.clone());
    [name, cluster, word(agent.status).to_owned(), heartbeat, agent.id.to_string()]
}

fn word(status: AgentStatus) -> &'static str {
    match status {
        AgentStatus::Active => "active",
        AgentStatus::Inactive => "inactive",
    }
}
