//! The stage of real processes: broker, agents and API servers on free ports, in real time.
//!
//! What it cannot do it says: faults of the network, most of those of an API server, and what only an API server's own
//! records tell. A story that asks for one of these is not runnable here. What a webhook can do to an object it does: the
//! API server asks one that this program serves, or the simulated one does the same by itself.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::Value;
use sindri_client::Client;
use sindri_cluster::{Cluster, ClusterError, Options, Provider};
use sindri_world::environment::{
    ClusterCall, Environment, HostAction, OperatorJob, StepError, WriteCounts, register_agents,
};
use sindri_world::expected_state::ExpectedState;
use sindri_world::http_faults::RecordedRequest;
use sindri_world::journal::AgentWrite;
use sindri_world::scenario::{ClusterFault, Fleet, Span};
use tokio::time::Instant;

use crate::api;
use crate::counts::Counts;
use crate::faults::Faults;
use crate::page;
use crate::process::{Process, ProcessError};
use crate::rights;
use crate::site::{AGENT_KEY, Broker, POLLING_INTERVAL, PROBES, Site};

/// The longest that a job of the operator may take. Longer than it asks a broker that is away.
const JOB_MAX: Duration = Duration::from_secs(150);
/// The longest single wait: a story that lets ten minutes pass belongs into virtual time.
const ADVANCE_MAX: Duration = Duration::from_secs(60);
/// What a story calls a polling interval: a poll, and as much again for the pass that follows it on a busy machine.
const POLL_AND_PASS: Duration = POLLING_INTERVAL.saturating_mul(2);
/// The longest that an agent may take to say what it counts.
const PAGE_MAX: Duration = Duration::from_secs(10);

/// Real processes. Fields are dropped in this order: agents end before what they talk to, files go last.
pub struct RealEnvironment {
    agents: BTreeMap<String, Process>,
    broker: Broker,
    clusters: BTreeMap<String, RealCluster>,
    client: Client,
    began: Instant,
    site: Site,
}

/// A cluster, and what goes wrong in it.
struct RealCluster {
    running: Box<dyn Cluster>,
    faults: Faults,
}

/// What is there for a cluster.
fn find<'a, T>(all: &'a mut BTreeMap<String, T>, cluster: &str) -> Result<&'a mut T, StepError> {
    all.get_mut(cluster).ok_or_else(|| StepError::Failed(format!("there is no cluster {cluster:?}")))
}

fn broken(error: impl std::fmt::Display) -> StepError {
    StepError::Failed(error.to_string())
}

fn no_cluster(error: ClusterError) -> StepError {
    if error.is_not_run() { StepError::Unavailable(error.to_string()) } else { broken(error) }
}

impl RealEnvironment {
    /// Starts a broker.
    pub fn new(site: Site) -> Result<Self, StepError> {
        let broker = site.start_broker().map_err(broken)?;
        let address = broker.url.parse().map_err(broken)?;
        let client = Client::new(HttpConnector::new(), address, &broker.key).map_err(broken)?;
        let (agents, clusters) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { agents, broker, clusters, client, began: Instant::now(), site })
    }

    /// Starts a cluster and an agent for each of a fleet.
    pub fn add_clusters(
        &mut self,
        fleet: &Fleet,
        provider: &dyn Provider,
        ledger: &RefCell<ExpectedState>,
    ) -> Result<(), StepError> {
        if fleet.replicas > 1 || fleet.brokers > 1 {
            return Err(StepError::Unsupported("start several processes of one agent or broker"));
        }
        if fleet.clocks_ahead != Span::default() {
            return Err(StepError::Unsupported("change a clock"));
        }
        for agent in register_agents(self, &fleet.agents, ledger)? {
            let cluster = provider.start(&Options::default()).map_err(no_cluster)?;
            let access = cluster.access();
            let granted =
                rights::grant(self.site.waiter(), access, self.site.path(), &agent.name, fleet.namespace.as_deref());
            let kubeconfig = granted.map_err(StepError::Failed)?.unwrap_or_else(|| access.kubeconfig.clone());
            let process = self.site.start_agent(
                &agent.name,
                &agent.key,
                &self.broker.url,
                &kubeconfig,
                POLLING_INTERVAL,
                fleet.namespace.as_deref(),
            );
            self.agents.insert(agent.name.clone(), process.map_err(broken)?);
            let cluster = RealCluster { running: cluster, faults: Faults::none(provider.name()) };
            self.clusters.insert(agent.name, cluster);
        }
        Ok(())
    }

    /// Starts again what the story killed and left so, and heals what it made fail.
    pub fn end_faults(&mut self) -> Result<(), StepError> {
        let names: Vec<String> = self.agents.keys().cloned().collect();
        names.iter().try_for_each(|name| self.heal_cluster(name))?;
        for name in std::iter::once("broker".to_owned()).chain(names) {
            self.restart(&name)?;
        }
        Ok(())
    }

    fn restart(&mut self, name: &str) -> Result<(), StepError> {
        self.process(name)?.restart().map_err(broken)?;
        if name == "broker" {
            self.broker.process.ready(self.site.waiter()).map_err(broken)?;
        }
        Ok(())
    }

    fn process(&mut self, name: &str) -> Result<&mut Process, StepError> {
        let known = match name {
            "broker" => Some(&mut self.broker.process),
            _ => self.agents.get_mut(name),
        };
        // A cluster that forgets is another cluster.
        known.ok_or(StepError::Unsupported("kill anything but agents and the broker"))
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        self.agents.values_mut().chain([&mut self.broker.process])
    }

    /// The last lines of every log.
    pub fn tails(&mut self) -> String {
        self.processes().map(|process| process.tail()).collect()
    }
}

impl Drop for RealEnvironment {
    fn drop(&mut self) {
        // All at once, so that they end at the same time; each is then waited for where it is dropped.
        self.processes().for_each(Process::ask_to_end);
    }
}

impl Environment for RealEnvironment {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn polling_interval(&self) -> Duration {
        POLL_AND_PASS
    }

    fn advance(&mut self, by: Duration) -> Result<(), StepError> {
        if by > ADVANCE_MAX {
            return Err(StepError::Unsupported("let more than a minute pass at once"));
        }
        self.site.waiter().pause(by).map_err(broken)?;
        let checked: Result<(), ProcessError> = self.processes().try_for_each(Process::check);
        checked.map_err(broken)?;
        self.clusters.values_mut().try_for_each(|cluster| cluster.running.check()).map_err(broken)
    }

    fn run_job(&mut self, job: OperatorJob, done: &dyn Fn() -> bool) -> Result<(), StepError> {
        self.site.waiter().wait(JOB_MAX, job(self.client.clone())).map_err(broken)?;
        if done() { Ok(()) } else { Err(broken("the operator's job ended without a result")) }
    }

    fn call_cluster(&mut self, cluster: &str, call: ClusterCall) -> Result<(u16, Value), StepError> {
        api::call(self.site.waiter(), find(&mut self.clusters, cluster)?.running.access(), call)
            .map_err(StepError::Failed)
    }

    fn act_on_hosts(&mut self, action: HostAction) -> Result<(), StepError> {
        match action {
            HostAction::Kill(name) => self.process(&name).map(Process::kill),
            HostAction::Restart(name) => self.restart(&name),
            HostAction::Partition(_) | HostAction::Repair(_) => Err(StepError::Unsupported("cut the network")),
            HostAction::Latency(..) => Err(StepError::Unsupported("make the network slow")),
            HostAction::Backup | HostAction::Restore { .. } => Err(StepError::Unsupported("restore a backup")),
            HostAction::Stall(_) => Err(StepError::Unsupported("stall a database")),
        }
    }

    fn replace_key(&mut self, agent: &str, key: String) -> Result<(), StepError> {
        let process = self.process(agent)?;
        process.kill();
        process.set_variable(AGENT_KEY, key);
        process.restart().map_err(broken)
    }

    fn fail_cluster(&mut self, fault: &ClusterFault) -> Result<(), StepError> {
        let RealCluster { running, faults } = find(&mut self.clusters, &fault.cluster)?;
        faults.add(self.site.waiter(), running.access(), fault)
    }

    fn heal_cluster(&mut self, cluster: &str) -> Result<(), StepError> {
        let RealCluster { running, faults } = find(&mut self.clusters, cluster)?;
        faults.end(self.site.waiter(), running.access())
    }

    fn count_writes(&mut self, cluster: &str) -> Result<WriteCounts, StepError> {
        let agent = find(&mut self.agents, cluster)?;
        if agent.id().is_none() {
            // Who does not run writes nothing.
            return Ok(WriteCounts::default());
        }
        // RecordedRequest each time: started again it answers elsewhere.
        let address = agent.says(self.site.waiter(), PROBES).map_err(broken)?;
        let page = self.site.waiter().wait(PAGE_MAX, page::metrics(&address)).map_err(broken)?;
        let counts = Counts::new(&page.map_err(StepError::Failed)?);
        Ok(counts.writes().map(|(verb, times)| (verb.to_owned(), times)).collect())
    }

    fn list_writes(&mut self, _: &str) -> Result<Vec<AgentWrite>, StepError> {
        Err(StepError::Unsupported("tell what an agent wrote"))
    }

    fn list_requests(&mut self, _: &str, _: &str) -> Result<Vec<RecordedRequest>, StepError> {
        Err(StepError::Unsupported("tell what an agent asked"))
    }
}
