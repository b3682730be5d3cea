//! Runs the steps of a scenario with real processes: broker, agents and API servers on free ports, in real time.
//!
//! Unsupported: faults of the network, most faults of an API server, and checks that need an API server's own journal. A
//! scenario that needs one of these is not runnable here. Rewrites of an object are supported: by an admission webhook of this
//! program, or by the simulated API server itself.

use rustix::process::Signal;
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

use crate::cluster_api;
use crate::faults::Faults;
use crate::metrics::Counters;
use crate::process::{Process, ProcessError};
use crate::rbac;
use crate::workspace::{AGENT_KEY, Broker, POLLING_INTERVAL, PROBES, Workspace};

/// Timeout of a job of the operator: longer than its retries when the broker is down.
const JOB_MAX: Duration = Duration::from_secs(150);
/// Maximum single wait: scenarios that wait for minutes belong in virtual time.
const ADVANCE_MAX: Duration = Duration::from_secs(60);
/// Polling interval for scenarios: that of the agent, and as much again for the pass on an overloaded machine.
const POLL_AND_PASS: Duration = POLLING_INTERVAL.saturating_mul(2);
/// Timeout of a request for an agent's metrics.
const METRICS_MAX: Duration = Duration::from_secs(10);

/// The running processes. Fields are dropped in this order: agents end before their peers, files are removed last.
pub struct RealEnvironment {
    agents: BTreeMap<String, Process>,
    broker: Broker,
    clusters: BTreeMap<String, RealCluster>,
    client: Client,
    began: Instant,
    workspace: Workspace,
}

/// A cluster with its faults.
struct RealCluster {
    running: Box<dyn Cluster>,
    faults: Faults,
}

/// Returns the entry of a cluster.
fn find<'a, T>(all: &'a mut BTreeMap<String, T>, cluster: &str) -> Result<&'a mut T, StepError> {
    all.get_mut(cluster).ok_or_else(|| StepError::Failed(format!("there is no cluster {cluster:?}")))
}

fn broken(error: impl std::fmt::Display) -> StepError {
    StepError::Failed(error.to_string())
}

fn cluster_trouble(error: ClusterError) -> StepError {
    if error.is_not_run() { StepError::Unavailable(error.to_string()) } else { broken(error) }
}

impl RealEnvironment {
    /// Starts a broker.
    pub fn new(workspace: Workspace) -> Result<Self, StepError> {
        let broker = workspace.start_broker().map_err(broken)?;
        let address = broker.url.parse().map_err(broken)?;
        let client = Client::new(HttpConnector::new(), address, &broker.key).map_err(broken)?;
        let (agents, clusters) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { agents, broker, clusters, client, began: Instant::now(), workspace })
    }

    /// Starts a cluster and an agent for each agent of a fleet.
    pub fn add_clusters(
        &mut self,
        fleet: &Fleet,
        provider: &dyn Provider,
        expected_state: &RefCell<ExpectedState>,
    ) -> Result<(), StepError> {
        if fleet.replicas > 1 || fleet.brokers > 1 {
            return Err(StepError::Unsupported("start several processes of one agent or broker"));
        }
        if fleet.limits != Default::default() {
            return Err(StepError::Unsupported("change a limit of an agent"));
        }
        if fleet.clocks_ahead != Span::default() {
            return Err(StepError::Unsupported("change a clock"));
        }
        for agent in register_agents(self, &fleet.agents, expected_state)? {
            let options = Options { runs_pods: fleet.runs_pods, ..Options::default() };
            let cluster = provider.start(&options).map_err(cluster_trouble)?;
            let access = cluster.access();
            let granted = rbac::grant_agent_permissions(
                self.workspace.runtime(),
                access,
                self.workspace.path(),
                &agent.name,
                fleet.namespace.as_deref(),
            );
            let kubeconfig = granted.map_err(StepError::Failed)?.unwrap_or_else(|| access.kubeconfig.clone());
            let process = self.workspace.start_agent(
                &agent.name,
                &agent.key,
                &self.broker.url,
                &kubeconfig,
                POLLING_INTERVAL,
                &list_agent_arguments(fleet),
            );
            self.agents.insert(agent.name.clone(), process.map_err(broken)?);
            let cluster = RealCluster { running: cluster, faults: Faults::none(provider.name()) };
            self.clusters.insert(agent.name, cluster);
        }
        Ok(())
    }

    /// Restarts processes that the scenario has killed, and removes its faults from the clusters.
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
            self.broker.process.wait_until_ready(self.workspace.runtime()).map_err(broken)?;
        }
        Ok(())
    }

    fn process(&mut self, name: &str) -> Result<&mut Process, StepError> {
        let known = match name {
            "broker" => Some(&mut self.broker.process),
            _ => self.agents.get_mut(name),
        };
        // An API server that restarts without its data would be another cluster.
        known.ok_or(StepError::Unsupported("kill anything but agents and the broker"))
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        self.agents.values_mut().chain([&mut self.broker.process])
    }

    /// Returns the last lines of every log.
    pub fn tails(&mut self) -> String {
        self.processes().map(|process| process.tail()).collect()
    }
}

impl Drop for RealEnvironment {
    fn drop(&mut self) {
        // All first, so that they end at the same time; each is awaited when it is dropped.
        self.processes().for_each(Process::terminate);
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
        self.workspace.runtime().sleep(by).map_err(broken)?;
        let checked: Result<(), ProcessError> = self.processes().try_for_each(Process::check);
        checked.map_err(broken)?;
        self.clusters.values_mut().try_for_each(|cluster| cluster.running.check()).map_err(broken)
    }

    fn run_job(&mut self, job: OperatorJob, done: &dyn Fn() -> bool) -> Result<(), StepError> {
        self.workspace.runtime().block_on(JOB_MAX, job(self.client.clone())).map_err(broken)?;
        if done() { Ok(()) } else { Err(broken("the operator's job ended without a result")) }
    }

    fn call_cluster(&mut self, cluster: &str, call: ClusterCall) -> Result<(u16, Value), StepError> {
        cluster_api::send(self.workspace.runtime(), find(&mut self.clusters, cluster)?.running.access(), call)
            .map_err(StepError::Failed)
    }

    fn act_on_hosts(&mut self, action: HostAction) -> Result<(), StepError> {
        match action {
            HostAction::Kill(name) => self.process(&name).map(Process::kill),
            HostAction::Restart(name) => self.restart(&name),
            HostAction::Pause(name) => self.process(&name).map(|process| process.signal(Signal::STOP)),
            HostAction::Continue(name) => self.process(&name).map(|process| process.signal(Signal::CONT)),
            HostAction::Partition(_) | HostAction::Repair(_) => Err(StepError::Unsupported("cut the network")),
            HostAction::Latency(..) => Err(StepError::Unsupported("make the network slow")),
            HostAction::Backup | HostAction::Restore { .. } => Err(StepError::Unsupported("restore a backup")),
            HostAction::SnapshotEtcd(_) | HostAction::RestoreEtcd(_) => Err(StepError::Unsupported("restore etcd")),
            HostAction::Stall(_) | HostAction::Resume(_) => Err(StepError::Unsupported("stall a database")),
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
        faults.add(self.workspace.runtime(), running.access(), fault)
    }

    fn heal_cluster(&mut self, cluster: &str) -> Result<(), StepError> {
        let RealCluster { running, faults } = find(&mut self.clusters, cluster)?;
        faults.clear(self.workspace.runtime(), running.access())
    }

    fn count_writes(&mut self, cluster: &str) -> Result<WriteCounts, StepError> {
        let agent = find(&mut self.agents, cluster)?;
        if agent.id().is_none() {
            // An agent that does not run writes nothing.
            return Ok(WriteCounts::default());
        }
        // Read each time: the address is another one after a restart.
        let address = agent.wait_for_line(self.workspace.runtime(), PROBES).map_err(broken)?;
        let counters = self.workspace.runtime().block_on(METRICS_MAX, Counters::fetch(&address)).map_err(broken)?;
        Ok(counters.map_err(StepError::Failed)?.writes().map(|(verb, times)| (verb.to_owned(), times)).collect())
    }

    fn list_writes(&mut self, _: &str) -> Result<Vec<AgentWrite>, StepError> {
        Err(StepError::Unsupported("list the writes of an agent"))
    }

    fn list_requests(&mut self, _: &str, _: &str) -> Result<Vec<RecordedRequest>, StepError> {
        Err(StepError::Unsupported("list the requests of an agent"))
    }
}

/// Lists the arguments of an agent that a scenario sets.
fn list_agent_arguments(fleet: &Fleet) -> Vec<String> {
    let namespace = fleet.namespace.iter().map(|namespace| format!("--namespace={namespace}"));
    let reserved = fleet.reserved_namespaces.join(",");
    let reserved = (!reserved.is_empty()).then(|| format!("--reserved-namespaces={reserved}"));
    let account = fleet.default_service_account.iter().map(|account| format!("--default-service-account={account}"));
    namespace.chain(reserved).chain(account).collect()
}
