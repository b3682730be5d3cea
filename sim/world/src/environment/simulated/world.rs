//! A simulated world: its hosts, clusters and faults, and the steps through time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use sindri_agent::Settings;
use sindri_apiserver::{Actor, ApiServer, ControllerDelays, Fault, Request, SharedServer, StoredKey, Write};
use sindri_model::Pak;
use tokio::sync::mpsc;

use super::fault_schedule::{FaultSchedule, Recovery};
use super::lasting_faults::{Cause, LastingFault, LastingFaults};
use super::options::Options;
use crate::engine::{Engine, EnteredHosts, HostId, Latency};
use crate::environment::error::StepError;
use crate::environment::interface::{ClusterCall, Environment, HostAction};
use crate::environment::registration::register_agents;
use crate::environment::write_counts::WriteCounts;
use crate::expected_state::ExpectedState;
use crate::exploration::{HostFault, RequestFaults, ResponseFault};
use crate::hosts::{self, AgentKey, AgentSetup, Database, OperatorJob};
use crate::http_exchanges::{ExchangeLog, HttpExchange};
use crate::http_faults::{FaultInjector, InjectedFault, InjectionRule, RecordedRequest, RequestPattern};
use crate::journal::{AgentWrite, Operation};
use crate::object_key::from_stored_key;
use crate::oracle::WriteOracle;
use crate::rng::SeededRng;
use crate::scenario::{ClusterFault, broker_name, replica_name};
use crate::wall_clock::wall_time;
use crate::{disk, libc_shim, trace};

/// Longest time for one job of the operator.
const JOB_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// User agent of the other client that changes objects of a cluster.
const OTHER_CLIENT: &str = "kubectl/scenario";

struct Cluster {
    api: HostId,
    /// Key of its agent.
    key: AgentKey,
    server: SharedServer,
    faults: Arc<FaultInjector>,
    oracle: WriteOracle,
    /// Writes of its agent, in order.
    agent_writes: Vec<AgentWrite>,
}

/// A simulated world.
pub struct SimulatedWorld {
    options: Options,
    engine: Box<dyn Engine>,
    hosts: BTreeMap<String, HostId>,
    database: Database,
    backup: Option<BTreeMap<String, Vec<u8>>>,
    clusters: BTreeMap<String, Cluster>,
    /// Snapshots of clusters, by name.
    snapshots: BTreeMap<String, ApiServer>,
    jobs: mpsc::Sender<OperatorJob>,
    expected: Rc<RefCell<ExpectedState>>,
    exchanges: ExchangeLog,
    lasting_faults: LastingFaults,
    /// Links whose latency a step has set.
    slow_links: BTreeSet<[String; 2]>,
    schedule: FaultSchedule,
    /// Number of events of the agents until the faults end.
    events: u64,
    are_events_counted: bool,
}

impl SimulatedWorld {
    /// Creates a world: a broker with its operator, then an API server and an agent for each cluster.
    ///
    /// The calling thread must come from [`crate::isolate`].
    pub fn new(options: Options, expected: Rc<RefCell<ExpectedState>>) -> Result<Self, StepError> {
        let (seed, brokers) = (options.seed, options.fleet.brokers);
        let mut engine = options.engine.engine(seed);
        let admin = Pak::generate(&SeededRng::new(seed, "admin").into_entropy());
        let (jobs, queue) = mpsc::channel(1);
        let mut hosts = BTreeMap::new();
        let database = if brokers > 1 { Database::shared() } else { Database::default() };
        let exchanges = ExchangeLog::default();
        for name in (0..brokers).map(broker_name) {
            let broker = hosts::broker(seed, &name, admin.clone(), database.clone(), exchanges.clone());
            hosts.insert(name.clone(), engine.add_host(&name, broker));
        }
        let operator = hosts::operator(admin.reveal(), queue, brokers);
        hosts.insert("operator".to_owned(), engine.add_host("operator", operator));
        let mut world = Self {
            engine,
            hosts,
            database,
            backup: None,
            clusters: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            jobs,
            expected,
            exchanges,
            lasting_faults: LastingFaults::default(),
            slow_links: BTreeSet::new(),
            schedule: FaultSchedule::new(seed),
            events: 0,
            are_events_counted: true,
            options,
        };
        world.add_clusters()?;
        world.begin_faults();
        Ok(world)
    }

    fn add_clusters(&mut self) -> Result<(), StepError> {
        let (names, expected) = (self.options.fleet.agents.clone(), self.expected.clone());
        for agent in register_agents(self, &names, &expected)? {
            self.add_cluster(&agent.name, agent.key);
        }
        Ok(())
    }

    fn add_cluster(&mut self, name: &str, key: String) {
        let api_name = format!("{name}-api");
        let seed = self.options.seed;
        let (ids_seed, delays) =
            (SeededRng::new(seed, &api_name).next_u64(), ControllerDelays::default().with_crd_gap());
        let server = ApiServer::with_delays(ids_seed, wall_time(), delays);
        let server = match self.options.fleet.runs_pods {
            true => server.with_workloads().with_kubelet(wall_time(), &["node-1"]),
            false => server,
        };
        let server = SharedServer::new(server);
        let faults = Arc::new(FaultInjector::new(api_name.clone()));
        let api = self.engine.add_host(&api_name, hosts::api_server(server.clone(), faults.clone()));
        let key = AgentKey::new(key);
        let fleet = &self.options.fleet;
        let settings = Settings {
            polling_interval: self.options.polling_interval,
            namespace: fleet.namespace.clone(),
            reserved_namespaces: fleet.reserved_namespaces.clone(),
            default_service_account: fleet.default_service_account.clone(),
            ..Settings::new(name.to_owned(), name.to_owned())
        };
        let setup = AgentSetup {
            settings,
            key: key.clone(),
            brokers: fleet.brokers,
            clocks_ahead: fleet.clocks_ahead.0,
            limits: fleet.limits,
            faults: faults.clone(),
        };
        for identity in (0..fleet.replicas).map(|index| replica_name(name, index)) {
            let agent = self.engine.add_host(&identity, hosts::agent(seed, &identity, setup.clone()));
            self.hosts.insert(identity, agent);
        }
        self.hosts.insert(api_name, api);
        let (oracle, agent_writes) = (WriteOracle::new(name), Vec::new());
        self.clusters.insert(name.to_owned(), Cluster { api, key, server, faults, oracle, agent_writes });
    }

    fn begin_faults(&mut self) {
        let Options { faults, seed, fleet, .. } = &self.options;
        if faults.is_empty() {
            return;
        }
        self.schedule.begin(faults, *seed, &fleet.agents);
        for (name, cluster) in &self.clusters {
            cluster.faults.set_exploration(Some(RequestFaults::new(faults, *seed, name)));
        }
    }

    /// Ends every fault: restarts dead hosts, repairs the network, heals API servers and the database.
    pub fn end_faults(&mut self) -> Result<(), StepError> {
        trace::record("world", "~ every fault ends");
        self.schedule.end();
        self.are_events_counted = false;
        self.database.stalls.end(None);
        for cluster in self.clusters.values() {
            cluster.faults.set_exploration(None);
            cluster.faults.clear_rules();
            cluster.faults.take_client_kill();
        }
        let (partitions, dead): (Vec<_>, Vec<_>) =
            self.lasting_faults.list().into_iter().partition(|(fault, _)| matches!(fault, LastingFault::Partition(_)));
        for (fault, cause) in partitions {
            self.end_fault(fault, cause)?;
        }
        for [one, other] in std::mem::take(&mut self.slow_links) {
            self.engine.set_latency(self.host(&one)?, self.host(&other)?, Latency::default());
        }
        for (fault, cause) in dead {
            self.end_fault(fault, cause)?;
        }
        Ok(())
    }

    /// Describes a fault of the scenario that no request matched, if there is one.
    pub fn find_unmatched_fault(&self) -> Option<String> {
        self.clusters.iter().find_map(|(name, cluster)| {
            let pattern = cluster.faults.unmatched_patterns().into_iter().next()?;
            Some(format!("no request of the agent of {name} matched the fault for requests `{pattern}`"))
        })
    }

    /// Gives access to the oracle of a cluster and to its API server with the objects as they are now.
    pub fn inspect<T>(&self, cluster: &str, inspect: impl FnOnce(&WriteOracle, &ApiServer) -> T) -> Option<T> {
        let cluster = self.clusters.get(cluster)?;
        Some(cluster.server.with(|server| inspect(&cluster.oracle, server)))
    }

    /// Returns the number of events of the agents before the faults ended: an agent received a packet, or a timer fired.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn host(&self, name: &str) -> Result<HostId, StepError> {
        self.hosts.get(name).copied().ok_or_else(|| StepError::Failed(format!("there is no host {name:?}")))
    }

    fn cluster(&self, name: &str) -> Result<&Cluster, StepError> {
        self.clusters.get(name).ok_or_else(|| StepError::Failed(format!("there is no cluster {name:?}")))
    }

    fn step(&mut self, limit: Duration) -> Result<(), StepError> {
        let limit = self.schedule.next_due().into_iter().fold(limit, Duration::min).max(self.engine.now());
        let stepped = self.engine.step(limit);
        let entered = stepped.map_err(|panic| StepError::violation("no-panic", panic.to_string()))?;
        self.count_events(&entered)?;
        self.kill_clients_of_faulty_requests()?;
        self.disturb_responses()?;
        self.recover()?;
        self.inject_host_fault()?;
        self.judge_writes(&entered)
    }

    /// Judges the writes of the API servers that were entered; the others cannot have written.
    fn judge_writes(&mut self, entered: &EnteredHosts) -> Result<(), StepError> {
        let expected = self.expected.borrow();
        let is_entered = |cluster: &&mut Cluster| match entered {
            EnteredHosts::Any => true,
            EnteredHosts::Only(hosts) => hosts.contains(&cluster.api),
        };
        for cluster in self.clusters.values_mut().filter(is_entered) {
            for write in cluster.server.with(ApiServer::take_journal) {
                cluster.faults.trace(&describe_write(&write));
                cluster.agent_writes.extend(AgentWrite::from_write(&write));
                let last_list = |key: &StoredKey, until| cluster.faults.last_list(key, until);
                cluster.oracle.judge(&write, &expected, last_list).map_err(StepError::Violation)?;
            }
        }
        Ok(())
    }

    /// Counts the events of the agents, and kills one at the chosen event.
    fn count_events(&mut self, entered: &EnteredHosts) -> Result<(), StepError> {
        let EnteredHosts::Only(entered) = entered else { return Ok(()) };
        let names: Vec<String> = self.clusters.keys().filter(|_| self.are_events_counted).cloned().collect();
        for name in names {
            if !entered.contains(&self.host(&name)?) || self.is_dead(&name) {
                continue;
            }
            self.events += 1;
            if self.options.kill_at == Some(self.events) {
                self.begin_fault(LastingFault::Dead(name.clone()), Cause::Exploration)?;
                self.schedule.restart_soon(self.engine.now(), name);
            }
        }
        Ok(())
    }

    /// Kills the agents whose request to the API server was chosen to be their last.
    fn kill_clients_of_faulty_requests(&mut self) -> Result<(), StepError> {
        let chosen = self.clusters.iter().filter(|(_, cluster)| cluster.faults.take_client_kill());
        let chosen: Vec<String> = chosen.map(|(name, _)| name.clone()).collect();
        chosen.into_iter().try_for_each(|name| self.kill_for_a_while(name))
    }

    fn kill_for_a_while(&mut self, name: String) -> Result<(), StepError> {
        if self.is_dead(&name) {
            return Ok(());
        }
        self.begin_fault(LastingFault::Dead(name.clone()), Cause::Exploration)?;
        self.schedule.restart_later(self.engine.now(), name);
        Ok(())
    }

    /// Chooses the faults of the responses that brokers have just sent to agents, and that are still on their way.
    fn disturb_responses(&mut self) -> Result<(), StepError> {
        for HttpExchange { server, client, .. } in self.exchanges.take() {
            if client == "operator" {
                continue;
            }
            match self.schedule.choose_response_fault() {
                None => {}
                Some(ResponseFault::KillAgent) => self.kill_for_a_while(client)?,
                Some(ResponseFault::LoseResponse) => {
                    trace::record("world", &format!("~ sever {server}|{client}"));
                    self.engine.sever(self.host(&server)?, self.host(&client)?);
                }
            }
        }
        Ok(())
    }

    fn is_dead(&self, name: &str) -> bool {
        self.lasting_faults.contains(&LastingFault::Dead(name.to_owned()))
    }

    /// Kills or pauses a host or separates two, unless another cause has done so.
    fn begin_fault(&mut self, fault: LastingFault, cause: Cause) -> Result<(), StepError> {
        match fault.clone() {
            LastingFault::Partition([one, other]) => {
                let (first, second) = (self.host(&one)?, self.host(&other)?);
                if self.lasting_faults.begin(fault, cause) {
                    trace::record("world", &format!("~ partition {one}|{other}"));
                    self.engine.partition(first, second);
                }
            }
            LastingFault::Dead(name) => {
                let host = self.host(&name)?;
                if self.lasting_faults.begin(fault, cause) {
                    trace::record("world", &format!("~ kill {name}"));
                    self.engine.kill(host);
                }
            }
            LastingFault::Paused(name) => {
                let host = self.host(&name)?;
                if self.lasting_faults.begin(fault, cause) {
                    trace::record("world", &format!("~ pause {name}"));
                    self.engine.pause(host);
                }
            }
        }
        Ok(())
    }

    /// Restarts a host, lets it go on or repairs a partition, unless it has another cause too.
    fn end_fault(&mut self, fault: LastingFault, cause: Cause) -> Result<(), StepError> {
        match fault.clone() {
            LastingFault::Partition([one, other]) => {
                let (first, second) = (self.host(&one)?, self.host(&other)?);
                if self.lasting_faults.end(fault, cause) {
                    trace::record("world", &format!("~ repair {one}|{other}"));
                    self.engine.repair(first, second);
                }
            }
            LastingFault::Dead(name) => {
                let host = self.host(&name)?;
                if self.lasting_faults.end(fault, cause) {
                    trace::record("world", &format!("~ restart {name}"));
                    self.engine.restart(host);
                }
            }
            LastingFault::Paused(name) => {
                let host = self.host(&name)?;
                if self.lasting_faults.end(fault, cause) {
                    trace::record("world", &format!("~ continue {name}"));
                    self.engine.resume(host);
                }
            }
        }
        Ok(())
    }

    fn recover(&mut self) -> Result<(), StepError> {
        while let Some(recovery) = self.schedule.take_recovery(self.engine.now()) {
            let fault = match recovery {
                Recovery::Restart(name) => LastingFault::Dead(name),
                Recovery::Repair(between) => LastingFault::partition(between),
            };
            self.end_fault(fault, Cause::Exploration)?;
        }
        Ok(())
    }

    fn inject_host_fault(&mut self) -> Result<(), StepError> {
        let now = self.engine.now();
        match self.schedule.take_host_fault(now) {
            Some(HostFault::KillBroker { down }) if !self.is_dead("broker") => {
                self.begin_fault(LastingFault::Dead("broker".into()), Cause::Exploration)?;
                self.schedule.recover_at(now + down, Recovery::Restart("broker".into()));
            }
            Some(HostFault::Partition { between, lasts }) => {
                let fault = LastingFault::partition(between.clone());
                if !self.lasting_faults.contains(&fault) {
                    self.begin_fault(fault, Cause::Exploration)?;
                    self.schedule.recover_at(now + lasts, Recovery::Repair(between));
                }
            }
            Some(HostFault::KillBroker { .. }) | None => {}
        }
        Ok(())
    }

    fn restore_etcd(&mut self, name: &str) -> Result<(), StepError> {
        let host = format!("{name}-api");
        self.act_on_hosts(HostAction::Kill(host.clone()))?;
        trace::record("world", &format!("~ restore of {name}"));
        let snapshot = self.snapshots.get(name).ok_or_else(|| StepError::Failed("there is no snapshot".to_owned()))?;
        self.cluster(name)?.server.with(|server| server.restore(snapshot));
        self.act_on_hosts(HostAction::Restart(host))
    }

    fn restore(&mut self, declared: bool) -> Result<(), StepError> {
        let backup = self.backup.clone().ok_or_else(|| StepError::Failed("there is no backup".to_owned()))?;
        if self.database.shared.is_some() {
            return Err(StepError::Unsupported("restore a database that several brokers have open"));
        }
        self.act_on_hosts(HostAction::Kill("broker".to_owned()))?;
        trace::record("world", "~ restore");
        disk::replace_files(backup);
        self.database.is_declared_restored.store(declared, Ordering::Relaxed);
        self.act_on_hosts(HostAction::Restart("broker".to_owned()))
    }
}

/// Describes a write for the trace: `= create ConfigMap shop/a by sindri-agent at 31`.
fn describe_write(write: &Write) -> String {
    let actor = match &write.actor {
        Actor::Client { user_agent, .. } => user_agent.split('/').next().unwrap_or("?"),
        Actor::Controller(name) => name,
    };
    let (operation, key) = (Operation::from_write(write), from_stored_key(&write.key));
    format!("= {operation} {key} by {actor} at {}", write.resource_version)
}

impl Environment for SimulatedWorld {
    fn now(&self) -> Duration {
        self.engine.now()
    }

    fn polling_interval(&self) -> Duration {
        self.options.polling_interval
    }

    fn advance(&mut self, by: Duration) -> Result<(), StepError> {
        let end = self.engine.now() + by;
        while self.engine.now() < end {
            self.step(end)?;
        }
        Ok(())
    }

    fn run_job(&mut self, job: OperatorJob, is_done: &dyn Fn() -> bool) -> Result<(), StepError> {
        let end = self.engine.now() + JOB_TIMEOUT;
        self.jobs.try_send(job).map_err(|_| StepError::Failed("the operator is busy or has ended".to_owned()))?;
        self.engine.wake(self.host("operator")?);
        while !is_done() && self.engine.now() < end {
            self.step(end)?;
        }
        Ok(())
    }

    fn call_cluster(&mut self, cluster: &str, call: ClusterCall) -> Result<(u16, Value), StepError> {
        let cluster = self.cluster(cluster)?;
        let mut request =
            Request::new(call.method, &call.target).map_err(|error| StepError::Failed(error.to_string()))?;
        request = request.with_body(call.content_type, call.body);
        request.headers.user_agent = OTHER_CLIENT.to_owned();
        let response = cluster.server.with(|server| server.handle(wall_time(), &request, None));
        let api = cluster.api;
        self.engine.wake(api);
        self.judge_writes(&EnteredHosts::Only(vec![api]))?;
        Ok((response.status().unwrap_or(0), response.body_json().unwrap_or_default()))
    }

    fn act_on_hosts(&mut self, action: HostAction) -> Result<(), StepError> {
        match action {
            HostAction::Partition(between) => self.begin_fault(LastingFault::partition(between), Cause::Scenario)?,
            HostAction::Repair(between) => self.end_fault(LastingFault::partition(between), Cause::Scenario)?,
            HostAction::Latency(between, min, max) => {
                trace::record("world", &format!("~ latency {} {min:?} to {max:?}", between.join("|")));
                let latency =
                    Latency { min: min.as_nanos() as libc_shim::Nanos, max: max.as_nanos() as libc_shim::Nanos };
                self.engine.set_latency(self.host(&between[0])?, self.host(&between[1])?, latency);
                self.slow_links.insert(between);
            }
            HostAction::Kill(name) => self.begin_fault(LastingFault::Dead(name), Cause::Scenario)?,
            HostAction::Restart(name) => self.end_fault(LastingFault::Dead(name), Cause::Scenario)?,
            HostAction::Pause(name) => self.begin_fault(LastingFault::Paused(name), Cause::Scenario)?,
            HostAction::Continue(name) => self.end_fault(LastingFault::Paused(name), Cause::Scenario)?,
            HostAction::Backup => {
                trace::record("world", "~ backup");
                self.backup = Some(disk::copy_files());
            }
            HostAction::Restore { declared } => self.restore(declared)?,
            HostAction::SnapshotEtcd(name) => {
                trace::record("world", &format!("~ snapshot of {name}"));
                let snapshot = self.cluster(&name)?.server.with(|server| server.clone());
                self.snapshots.insert(name, snapshot);
            }
            HostAction::RestoreEtcd(name) => self.restore_etcd(&name)?,
            HostAction::Stall(broker) => {
                trace::record("world", &format!("~ stall {}", broker.as_deref().unwrap_or("every broker")));
                self.database.stalls.begin(broker);
            }
            HostAction::Resume(broker) => {
                trace::record("world", &format!("~ resume {}", broker.as_deref().unwrap_or("every broker")));
                self.database.stalls.end(broker);
            }
        }
        Ok(())
    }

    fn replace_key(&mut self, agent: &str, key: String) -> Result<(), StepError> {
        self.cluster(agent)?.key.set(key);
        for name in (0..self.options.fleet.replicas).map(|index| replica_name(agent, index)) {
            self.act_on_hosts(HostAction::Kill(name.clone()))?;
            self.act_on_hosts(HostAction::Restart(name))?;
        }
        Ok(())
    }

    fn fail_cluster(&mut self, fault: &ClusterFault) -> Result<(), StepError> {
        let refuse = |status| Fault::Refuse { status, retry_after_secs: fault.retry_after };
        let injected = match (fault.status, fault.lose_response, fault.cut, &fault.rewrite, fault.panic) {
            (Some(status), false, false, None, false) => InjectedFault::Server(refuse(status)),
            (None, true, false, None, false) => InjectedFault::Server(Fault::LoseResponse),
            (None, false, true, None, false) => InjectedFault::Server(Fault::CutBeforeCommit),
            (None, false, false, Some(patch), false) => InjectedFault::Server(Fault::Rewrite(patch.clone())),
            (None, false, false, None, true) => InjectedFault::Panic,
            _ => {
                let reason = "fail takes exactly one of status, lose_response, cut, rewrite and panic";
                return Err(StepError::Failed(reason.to_owned()));
            }
        };
        trace::record("world", &format!("~ fail {} {:?} {injected:?}", fault.cluster, fault.requests));
        let requests = RequestPattern::parse(&fault.requests);
        let rule = InjectionRule { requests, fault: injected, times: fault.times };
        self.cluster(&fault.cluster)?.faults.add_rule(rule);
        Ok(())
    }

    fn heal_cluster(&mut self, cluster: &str) -> Result<(), StepError> {
        trace::record("world", &format!("~ heal {cluster}"));
        self.cluster(cluster)?.faults.clear_rules();
        Ok(())
    }

    fn count_writes(&mut self, cluster: &str) -> Result<WriteCounts, StepError> {
        Ok(self.cluster(cluster)?.agent_writes.iter().map(|write| (write.to_string(), 1)).collect())
    }

    fn list_writes(&mut self, cluster: &str) -> Result<Vec<AgentWrite>, StepError> {
        Ok(self.cluster(cluster)?.agent_writes.clone())
    }

    fn list_requests(&mut self, cluster: &str, words: &str) -> Result<Vec<RecordedRequest>, StepError> {
        Ok(self.cluster(cluster)?.faults.requests(&RequestPattern::parse(words)))
    }
}
