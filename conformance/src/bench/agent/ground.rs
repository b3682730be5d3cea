//! What one part is measured with: a cluster, a broker, and an agent that polls and answers probes.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_agent::cluster::kube_client;
use sindri_client::{Client, ClientError};
use sindri_cluster::{Access, Cluster, Options, Provider};
use sindri_model::wire::{AgentStatus, CreateAgentRequest, NewGenerator, UpdateAgentRequest};
use sindri_model::{AgentId, GeneratorId};

use super::hands::Hands;
use crate::bench::server::resident;
use crate::binaries::Binaries;
use crate::process::Process;
use crate::rights;
use crate::site::{Broker, PROBES, Site};
use crate::waiter::Waiter;

/// The agent and its cluster.
const NAME: &str = "figures";
const ENLIST_MAX: Duration = Duration::from_secs(30);

/// A kind of cluster, and what is needed to measure on it.
pub struct Place<'a> {
    /// Where clusters come from.
    pub provider: &'a dyn Provider,
    /// What is measured.
    pub binaries: &'a Binaries,
    /// Waits, and hears signals.
    pub waiter: &'a Rc<Waiter>,
    /// Says what is being done, for whoever waits.
    pub tell: fn(&str),
}

/// Running processes. Fields are dropped in this order: the agent ends before what it talks to, files go last.
pub struct Ground {
    agent: Process,
    broker: Broker,
    cluster: Box<dyn Cluster>,
    site: Site,
    enlisted: Enlisted,
    probes: String,
    kubeconfig: PathBuf,
}

struct Enlisted {
    generator: GeneratorId,
    agent: AgentId,
    key: String,
}

impl Place<'_> {
    /// Starts everything; the agent polls at this interval.
    pub fn start(&self, interval: Duration) -> Result<Ground, String> {
        let site = Site::new(self.binaries.clone(), self.waiter.clone()).map_err(words)?;
        let cluster = self.provider.start(&Options::default()).map_err(words)?;
        let granted = rights::grant(self.waiter, cluster.access(), site.path(), NAME, None)?;
        let kubeconfig = granted.unwrap_or_else(|| cluster.access().kubeconfig.clone());
        let broker = site.start_broker().map_err(words)?;
        let enlisted = self.waiter.wait(ENLIST_MAX, enlist(&broker)).map_err(words)??;
        let agent = site.start_agent(NAME, &enlisted.key, &broker.url, &kubeconfig, interval, None);
        let mut agent = agent.map_err(words)?;
        let probes = agent.says(self.waiter, PROBES).map_err(words)?;
        Ok(Ground { agent, broker, cluster, site, enlisted, probes, kubeconfig })
    }
}

impl Ground {
    /// Does something with what runs, for a bounded time; an error has the agent's last words.
    pub fn drive<T>(&self, within: Duration, work: impl AsyncFnOnce(&Hands) -> Result<T, String>) -> Result<T, String> {
        let driven = async {
            let hands = self.hands().await?;
            work(&hands).await
        };
        let driven = self.site.waiter().wait(within, driven).map_err(words).flatten();
        driven.map_err(|reason| format!("{reason}\n{}", self.agent.tail()))
    }

    /// Clients of their own: a connection must not outlive the wait in which it is driven.
    async fn hands(&self) -> Result<Hands, String> {
        let access = self.cluster.access();
        let agents = Access { kubeconfig: self.kubeconfig.clone(), context: None, ..access.clone() };
        Ok(Hands {
            broker: client(&self.broker)?,
            cluster: connect(&agents).await?,
            someone: connect(access).await?,
            agent: self.enlisted.agent,
            generator: self.enlisted.generator,
            probes: self.probes.clone(),
            broker_address: self.broker.url.trim_start_matches("http://").to_owned(),
        })
    }

    /// Kills the agent and starts it again: it has to find out everything anew.
    pub fn start_agent_anew(&mut self) -> Result<(), String> {
        self.agent.kill();
        self.agent.restart().map_err(words)?;
        self.probes = self.agent.says(self.site.waiter(), PROBES).map_err(words)?;
        Ok(())
    }

    /// Resident memory of the agent, in megabytes.
    pub fn memory(&self) -> Result<f64, String> {
        resident(self.agent.id().ok_or("the agent has ended")?)
    }
}

async fn enlist(broker: &Broker) -> Result<Enlisted, String> {
    let client = client(broker)?;
    let failed = |error: ClientError| error.to_string();
    let generator = NewGenerator { name: NAME.to_owned(), description: None };
    let generator = client.create_generator(&generator).await.map_err(failed)?.generator.id;
    let generator_ids = Some(vec![generator]);
    let request = CreateAgentRequest { name: NAME.to_owned(), cluster_name: NAME.to_owned(), generator_ids };
    let created = client.create_agent(&request).await.map_err(failed)?;
    let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
    client.update_agent(created.agent.id, &active).await.map_err(failed)?;
    Ok(Enlisted { generator, agent: created.agent.id, key: created.initial_pak })
}

/// A client of a cluster, connected as the agent is.
async fn connect(access: &Access) -> Result<kube::Client, String> {
    kube_client(&access.config().await.map_err(words)?, connector()).map_err(words)
}

/// Like the agent's: what is longer than a packet is sent at once.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}

fn client(broker: &Broker) -> Result<Client, String> {
    let address = broker.url.parse().map_err(|_| format!("{} is no address", broker.url))?;
    Client::new(connector(), address, &broker.key).map_err(words)
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
