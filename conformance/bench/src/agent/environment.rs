//! The processes that one part is measured with: a cluster, a broker and an agent.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_agent::cluster::kube_client;
use sindri_client::Client;
use sindri_cluster::{Access, Cluster, Options, Provider, ProviderName};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::process::Process;
use sindri_conformance::rbac;
use sindri_conformance::runtime::InterruptibleRuntime;
use sindri_conformance::workspace::{Broker, PROBES, Workspace};
use sindri_model::wire::{AgentStatus, CreateAgentRequest, NewGenerator, UpdateAgentRequest};
use sindri_model::{AgentId, GeneratorId};

use super::clients::{Clients, to_message};
use crate::process_memory::resident;

/// Name of the agent, its cluster and its generator.
const NAME: &str = "figures";
const REGISTER_MAX: Duration = Duration::from_secs(30);

/// A provider of clusters, and what is needed to measure with it.
pub struct Setup<'a> {
    /// Provider of the clusters.
    pub provider: &'a dyn Provider,
    /// Binaries that are measured.
    pub binaries: &'a Binaries,
    /// Runs futures, and listens for signals.
    pub runtime: &'a Rc<InterruptibleRuntime>,
    /// Prints a line of progress.
    pub progress: fn(&str),
}

/// Running processes. Fields are dropped in this order: the agent ends before what it talks to, files go last.
pub struct Environment {
    agent: Process,
    broker: Broker,
    cluster: Box<dyn Cluster>,
    workspace: Workspace,
    registration: Registration,
    agent_address: String,
    kubeconfig: PathBuf,
}

/// The agent as the broker knows it.
struct Registration {
    generator: GeneratorId,
    agent: AgentId,
    key: String,
}

impl Setup<'_> {
    /// Starts all processes; the agent polls at this interval.
    pub fn start(&self, interval: Duration) -> Result<Environment, String> {
        let workspace = Workspace::new(self.binaries.clone(), self.runtime.clone()).map_err(to_message)?;
        let cluster = self.provider.start(&Options::default()).map_err(to_message)?;
        let granted = rbac::grant_agent_permissions(self.runtime, cluster.access(), workspace.path(), NAME, None)?;
        let kubeconfig = granted.unwrap_or_else(|| cluster.access().kubeconfig.clone());
        let broker = workspace.start_broker().map_err(to_message)?;
        let registration = self.runtime.block_on(REGISTER_MAX, register(&broker)).map_err(to_message)??;
        let agent = workspace.start_agent(NAME, &registration.key, &broker.url, &kubeconfig, interval, &[]);
        let mut agent = agent.map_err(to_message)?;
        let agent_address = agent.wait_for_line(self.runtime, PROBES).map_err(to_message)?;
        Ok(Environment { agent, broker, cluster, workspace, registration, agent_address, kubeconfig })
    }

    /// Returns true for a real API server.
    pub fn is_real(&self) -> bool {
        Provider::name(self.provider) != ProviderName::Sim
    }

    /// Name of a figure with that of the provider.
    pub fn figure_name(&self, name: &str) -> String {
        format!("{}: {name}", Provider::name(self.provider))
    }
}

impl Environment {
    /// Runs work with clients of the processes for a bounded time. An error contains the last lines of the agent's log.
    pub fn run<T>(&self, within: Duration, work: impl AsyncFnOnce(&Clients) -> Result<T, String>) -> Result<T, String> {
        let work = async {
            let clients = self.connect().await?;
            work(&clients).await
        };
        let done = self.workspace.runtime().block_on(within, work).map_err(to_message).flatten();
        done.map_err(|reason| format!("{reason}\n{}", self.agent.tail()))
    }

    /// Creates clients for one call of `run`: a connection must not outlive the runtime's `block_on` that drives it.
    async fn connect(&self) -> Result<Clients, String> {
        let administrator = self.cluster.access();
        let agent = Access { kubeconfig: self.kubeconfig.clone(), context: None, ..administrator.clone() };
        Ok(Clients {
            broker: connect_to_broker(&self.broker)?,
            cluster: connect_to_cluster(&agent).await?,
            administrator: connect_to_cluster(administrator).await?,
            agent: self.registration.agent,
            generator: self.registration.generator,
            agent_address: self.agent_address.clone(),
            broker_address: self.broker.url.trim_start_matches("http://").to_owned(),
        })
    }

    /// Kills the agent and starts it again, so that all its caches are empty.
    pub fn restart_agent(&mut self) -> Result<(), String> {
        self.agent.kill();
        self.agent.restart().map_err(to_message)?;
        self.agent_address = self.agent.wait_for_line(self.workspace.runtime(), PROBES).map_err(to_message)?;
        Ok(())
    }

    /// Resident memory of the agent, in megabytes.
    pub fn agent_memory(&self) -> Result<f64, String> {
        resident(self.agent.id().ok_or("the agent has ended")?)
    }
}

/// Creates an active agent at the broker.
async fn register(broker: &Broker) -> Result<Registration, String> {
    let client = connect_to_broker(broker)?;
    let generator = NewGenerator { name: NAME.to_owned(), description: None, key_expires_at: None };
    let generator = client.create_generator(&generator).await.map_err(to_message)?.generator.id;
    let generator_ids = Some(vec![generator]);
    let request = CreateAgentRequest {
        name: NAME.to_owned(),
        cluster_name: NAME.to_owned(),
        generator_ids,
        key_expires_at: None,
    };
    let created = client.create_agent(&request).await.map_err(to_message)?;
    let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
    client.update_agent(created.agent.id, &active).await.map_err(to_message)?;
    Ok(Registration { generator, agent: created.agent.id, key: created.initial_pak })
}

/// Connects to a cluster as the agent does.
async fn connect_to_cluster(access: &Access) -> Result<kube::Client, String> {
    kube_client(&access.config().await.map_err(to_message)?, connector()).map_err(to_message)
}

fn connect_to_broker(broker: &Broker) -> Result<Client, String> {
    let address = broker.url.parse().map_err(|_| format!("{} is no address", broker.url))?;
    Client::new(connector(), address, &broker.key).map_err(to_message)
}

/// Connector with the agent's settings: without Nagle's algorithm.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}
