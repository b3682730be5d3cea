//! The stage of the simulated world: production broker and agents as hosts, a simulated API server per cluster.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use sindri_agent::Settings;
use sindri_apiserver::{ApiServer, Fault, Request, SharedServer, Write};
use sindri_model::Pak;
use tokio::sync::mpsc;

use super::{ClusterCall, HostAction, Job, Stage, Trouble, Writes, enlist};
use crate::chaos::{AnswerFault, BrokerChaos, ChaosKind, GateChaos, HostChaos, HostFault};
use crate::dice::Dice;
use crate::engine::{Arm, Engine, Entered, HostId, Latency};
use crate::gate::{Asked, Gate, Rule, Words};
use crate::hosts::{self, Database};
use crate::ledger::Ledger;
use crate::oracle::{Watchman, describe, is_agents, is_lease, model_key};
use crate::scenario::ClusterFault;
use crate::{disk, shim, trace};

/// Calls of the operator that may take this long, and no longer.
const JOB_MAX: Duration = Duration::from_secs(10 * 60);
/// Nobody asks a simulated cluster under this name but the story itself.
const SOMEONE_ELSE: &str = "kubectl/story";

/// How long an agent is dead that is killed at an event.
const DEAD_FOR: Duration = Duration::from_millis(500);

/// How a world is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which arm runs it.
    pub arm: Arm,
    /// Decides everything.
    pub seed: u64,
    /// The agents by name, each with a cluster of its own.
    pub agents: Vec<String>,
    /// Processes of each agent.
    pub replicas: usize,
    /// The one namespace that the agents may touch.
    pub namespace: Option<String>,
    /// Brokers on one database.
    pub brokers: usize,
    /// By how much the agents' clocks are ahead.
    pub clocks_ahead: Duration,
    /// How often they poll.
    pub polling_interval: Duration,
    /// An agent dies at this event of the agents, counted from 1.
    pub kill_at: Option<u64>,
    /// Faults that are added.
    pub chaos: Vec<ChaosKind>,
}

struct Cluster {
    api: HostId,
    /// The key of its agent.
    key: hosts::AgentKey,
    server: SharedServer,
    gate: Arc<Gate>,
    watchman: Watchman,
    /// What its agent wrote, in this order.
    written: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relief {
    Restart(String),
    Repair([String; 2]),
}

/// A world.
pub struct SimulatedStage {
    options: Options,
    engine: Box<dyn Engine>,
    hosts: BTreeMap<String, HostId>,
    database: Database,
    backup: Option<BTreeMap<String, Vec<u8>>>,
    clusters: BTreeMap<String, Cluster>,
    jobs: mpsc::Sender<Job>,
    ledger: Rc<RefCell<Ledger>>,
    dead: BTreeSet<String>,
    cut: BTreeSet<[String; 2]>,
    relief: BTreeSet<(Duration, Relief)>,
    chaos: Option<HostChaos>,
    broker_chaos: Option<BrokerChaos>,
    chance: Dice,
    /// What happened to agents so far, until the faults end.
    events: u64,
    are_events_counted: bool,
}

impl SimulatedStage {
    /// Makes a world: a broker with its operator, then an API server and an agent for each cluster.
    ///
    /// Call it on a thread that [`crate::isolate`] made.
    pub fn new(options: Options, ledger: Rc<RefCell<Ledger>>) -> Result<Self, Trouble> {
        let mut engine = options.arm.engine(options.seed);
        let admin = Pak::mint(&Dice::new(options.seed, "admin").into_entropy());
        let (jobs, queue) = mpsc::channel(1);
        let mut hosts = BTreeMap::new();
        let database = if options.brokers > 1 { Database::shared() } else { Database::default() };
        for name in (0..options.brokers).map(hosts::broker_name) {
            let broker = hosts::broker(options.seed, &name, admin.clone(), database.clone());
            hosts.insert(name.clone(), engine.add_host(&name, broker));
        }
        let operator = hosts::operator(admin.reveal(), queue, options.brokers);
        hosts.insert("operator".to_owned(), engine.add_host("operator", operator));
        let mut stage = Self {
            engine,
            hosts,
            database,
            backup: None,
            clusters: BTreeMap::new(),
            jobs,
            ledger,
            dead: BTreeSet::new(),
            cut: BTreeSet::new(),
            relief: BTreeSet::new(),
            chaos: None,
            broker_chaos: None,
            chance: Dice::new(options.seed, "relief"),
            events: 0,
            are_events_counted: true,
            options,
        };
        stage.add_clusters()?;
        stage.begin_chaos();
        Ok(stage)
    }

    fn add_clusters(&mut self) -> Result<(), Trouble> {
        let (names, ledger) = (self.options.agents.clone(), self.ledger.clone());
        for agent in enlist(self, &names, &ledger)? {
            self.add_cluster(&agent.name, agent.key);
        }
        Ok(())
    }

    fn add_cluster(&mut self, name: &str, key: String) {
        let api_name = format!("{name}-api");
        let seed = Dice::new(self.options.seed, &api_name).roll();
        let server = SharedServer::new(ApiServer::new(seed, hosts::wall_time()));
        let gate = Arc::new(Gate::new(api_name.clone()));
        let api = self.engine.add_host(&api_name, hosts::api_server(server.clone(), gate.clone()));
        let Options { seed, polling_interval, brokers, replicas, clocks_ahead, .. } = self.options;
        let key = hosts::AgentKey::new(key);
        let namespace = self.options.namespace.clone();
        let settings = Settings { polling_interval, namespace, ..Settings::new(name.to_owned(), name.to_owned()) };
        for identity in (0..replicas).map(|index| hosts::replica_name(name, index)) {
            let setup = hosts::AgentSetup { settings: settings.clone(), key: key.clone(), brokers, clocks_ahead };
            let agent = hosts::agent(seed, &identity, setup);
            let agent = self.engine.add_host(&identity, agent);
            self.hosts.insert(identity, agent);
        }
        self.hosts.insert(api_name, api);
        let watchman = Watchman::new(name);
        self.clusters.insert(name.to_owned(), Cluster { api, key, server, gate, watchman, written: Vec::new() });
    }

    fn begin_chaos(&mut self) {
        let Options { chaos, seed, agents, .. } = &self.options;
        if chaos.is_empty() {
            return;
        }
        self.chaos = Some(HostChaos::new(chaos, *seed, agents));
        self.broker_chaos = Some(BrokerChaos::new(chaos, *seed));
        for (name, cluster) in &self.clusters {
            cluster.gate.set_chaos(Some(GateChaos::new(chaos, *seed, name)));
        }
    }

    /// Ends every fault: what is dead starts, what is cut is mended, every API server is well.
    pub fn end_faults(&mut self) -> Result<(), Trouble> {
        trace::record("world", "~ every fault ends");
        self.chaos = None;
        self.broker_chaos = None;
        self.are_events_counted = false;
        self.relief.clear();
        self.database.is_stalled.store(false, Ordering::Relaxed);
        for cluster in self.clusters.values() {
            cluster.gate.set_chaos(None);
            cluster.gate.clear_rules();
            cluster.gate.take_agent_dies();
        }
        for between in self.cut.clone() {
            self.act_on_hosts(HostAction::Repair(between))?;
        }
        for name in self.dead.clone() {
            self.act_on_hosts(HostAction::Restart(name))?;
        }
        Ok(())
    }

    /// The watchman of a cluster, with the objects that are there now.
    pub fn inspect<T>(&self, cluster: &str, look: impl FnOnce(&Watchman, &ApiServer) -> T) -> Option<T> {
        let cluster = self.clusters.get(cluster)?;
        Some(cluster.server.with(|machine| look(&cluster.watchman, machine)))
    }

    fn host(&self, name: &str) -> Result<HostId, Trouble> {
        self.hosts.get(name).copied().ok_or_else(|| Trouble::Broken(format!("there is no host {name:?}")))
    }

    fn cluster(&self, name: &str) -> Result<&Cluster, Trouble> {
        self.clusters.get(name).ok_or_else(|| Trouble::Broken(format!("there is no cluster {name:?}")))
    }

    fn step(&mut self, limit: Duration) -> Result<(), Trouble> {
        let relief = self.relief.first().map(|(due, _)| *due);
        let strike = self.chaos.as_ref().and_then(HostChaos::due);
        let limit = relief.into_iter().chain(strike).fold(limit, Duration::min).max(self.engine.now());
        let entered = self.engine.step(limit);
        self.count_events(&entered)?;
        if self.chaos.is_some() {
            self.kill_whom_chaos_chose()?;
            self.disturb_answers()?;
        }
        self.give_relief()?;
        if strike.is_some_and(|due| due <= self.engine.now()) {
            self.strike()?;
        }
        self.judge_writes(&entered)
    }

    /// Only an API server that did something can have written.
    fn judge_writes(&mut self, entered: &Entered) -> Result<(), Trouble> {
        let ledger = self.ledger.borrow();
        let acted = |cluster: &&mut Cluster| match entered {
            Entered::Any => true,
            Entered::Only(hosts) => hosts.contains(&cluster.api),
        };
        for cluster in self.clusters.values_mut().filter(acted) {
            for write in cluster.server.with(ApiServer::take_journal) {
                trace_write(&cluster.gate, &write);
                if is_agents(&write) && !is_lease(&model_key(&write.key)) {
                    cluster.written.push(describe(&write));
                }
                cluster.watchman.judge(&write, &ledger).map_err(Trouble::Violation)?;
            }
        }
        Ok(())
    }

    /// How often something happened to an agent before the faults ended.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Counts what happens to agents, and kills one at the event that was chosen.
    fn count_events(&mut self, entered: &Entered) -> Result<(), Trouble> {
        let Entered::Only(entered) = entered else { return Ok(()) };
        let names: Vec<String> = self.clusters.keys().filter(|_| self.are_events_counted).cloned().collect();
        for name in names {
            if !entered.contains(&self.host(&name)?) || self.dead.contains(&name) {
                continue;
            }
            self.events += 1;
            if self.options.kill_at == Some(self.events) {
                self.act_on_hosts(HostAction::Kill(name.clone()))?;
                self.relief.insert((self.engine.now() + DEAD_FOR, Relief::Restart(name)));
            }
        }
        Ok(())
    }

    fn kill_whom_chaos_chose(&mut self) -> Result<(), Trouble> {
        let dying: Vec<String> = self
            .clusters
            .iter()
            .filter(|(name, cluster)| cluster.gate.take_agent_dies() && !self.dead.contains(*name))
            .map(|(name, _)| name.clone())
            .collect();
        dying.into_iter().try_for_each(|name| self.kill_for_a_while(name))
    }

    fn kill_for_a_while(&mut self, name: String) -> Result<(), Trouble> {
        let down = Duration::from_millis(self.chance.between(100, 45_000));
        self.act_on_hosts(HostAction::Kill(name.clone()))?;
        self.relief.insert((self.engine.now() + down, Relief::Restart(name)));
        Ok(())
    }

    /// The broker logs each request when it has answered it: now the answer is on its way.
    fn disturb_answers(&mut self) -> Result<(), Trouble> {
        let agents = &self.options.agents;
        let mut faults = Vec::new();
        for _ in 0..trace::take_lines_of("broker") {
            let chosen = self.broker_chaos.as_mut().and_then(|chaos| chaos.choose(agents.len()));
            faults.extend(chosen.map(|(fault, agent)| (fault, agents[agent].clone())));
        }
        for (fault, agent) in faults {
            match fault {
                AnswerFault::Kill if !self.dead.contains(&agent) => self.kill_for_a_while(agent)?,
                AnswerFault::Kill => {}
                AnswerFault::Lose => {
                    trace::record("world", &format!("~ sever broker|{agent}"));
                    self.engine.sever(self.host("broker")?, self.host(&agent)?);
                }
            }
        }
        Ok(())
    }

    fn give_relief(&mut self) -> Result<(), Trouble> {
        while let Some((due, relief)) = self.relief.first().cloned().filter(|(due, _)| *due <= self.engine.now()) {
            self.relief.remove(&(due, relief.clone()));
            match relief {
                Relief::Restart(name) => self.act_on_hosts(HostAction::Restart(name))?,
                Relief::Repair(between) => self.act_on_hosts(HostAction::Repair(between))?,
            }
        }
        Ok(())
    }

    fn strike(&mut self) -> Result<(), Trouble> {
        let now = self.engine.now();
        let Some(fault) = self.chaos.as_mut().map(|chaos| chaos.strike(now)) else { return Ok(()) };
        match fault {
            HostFault::KillBroker { down } if !self.dead.contains("broker") => {
                self.act_on_hosts(HostAction::Kill("broker".into()))?;
                self.relief.insert((now + down, Relief::Restart("broker".into())));
            }
            HostFault::Partition { between, lasts } if !self.cut.contains(&between) => {
                self.act_on_hosts(HostAction::Partition(between.clone()))?;
                self.relief.insert((now + lasts, Relief::Repair(between)));
            }
            HostFault::KillBroker { .. } | HostFault::Partition { .. } => {}
        }
        Ok(())
    }
}

impl SimulatedStage {
    fn restore(&mut self, declared: bool) -> Result<(), Trouble> {
        let backup = self.backup.clone().ok_or_else(|| Trouble::Broken("there is no backup".to_owned()))?;
        if self.database.shared.is_some() {
            return Err(Trouble::Unsupported("restore a database that several brokers have open"));
        }
        self.act_on_hosts(HostAction::Kill("broker".to_owned()))?;
        trace::record("world", "~ restore");
        disk::put_back(backup);
        self.database.is_declared_restored.store(declared, Ordering::Relaxed);
        self.act_on_hosts(HostAction::Restart("broker".to_owned()))
    }
}

fn trace_write(gate: &Gate, write: &Write) {
    let who = match &write.actor {
        sindri_apiserver::Actor::Client { user_agent, .. } => user_agent.split('/').next().unwrap_or("?").to_owned(),
        sindri_apiserver::Actor::Controller(name) => (*name).to_owned(),
    };
    gate.note(&format!("= {} by {who} at {}", describe(write), write.resource_version));
}

impl Stage for SimulatedStage {
    fn now(&self) -> Duration {
        self.engine.now()
    }

    fn polling_interval(&self) -> Duration {
        self.options.polling_interval
    }

    fn advance(&mut self, by: Duration) -> Result<(), Trouble> {
        let end = self.engine.now() + by;
        while self.engine.now() < end {
            self.step(end)?;
        }
        Ok(())
    }

    fn run_job(&mut self, job: Job, done: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let end = self.engine.now() + JOB_MAX;
        self.jobs.try_send(job).map_err(|_| Trouble::Broken("the operator is busy or gone".to_owned()))?;
        self.engine.wake(self.host("operator")?);
        while !done() && self.engine.now() < end {
            self.step(end)?;
        }
        Ok(())
    }

    fn call_cluster(&mut self, cluster: &str, call: ClusterCall) -> Result<(u16, Value), Trouble> {
        let found = self.cluster(cluster)?;
        let mut request =
            Request::new(call.method, &call.target).map_err(|error| Trouble::Broken(error.to_string()))?;
        request = request.with_body(call.content_type, call.body);
        request.headers.user_agent = SOMEONE_ELSE.to_owned();
        let response = found.server.with(|machine| machine.handle(hosts::wall_time(), &request, None));
        let api = found.api;
        self.engine.wake(api);
        self.judge_writes(&Entered::Only(vec![api]))?;
        Ok((response.status().unwrap_or(0), response.body_json().unwrap_or_default()))
    }

    fn act_on_hosts(&mut self, action: HostAction) -> Result<(), Trouble> {
        match action {
            HostAction::Partition(between) => {
                trace::record("world", &format!("~ partition {}", between.join("|")));
                self.engine.partition(self.host(&between[0])?, self.host(&between[1])?);
                self.cut.insert(between);
            }
            HostAction::Repair(between) => {
                trace::record("world", &format!("~ repair {}", between.join("|")));
                self.engine.repair(self.host(&between[0])?, self.host(&between[1])?);
                self.cut.remove(&between);
            }
            HostAction::Latency(between, min, max) => {
                trace::record("world", &format!("~ latency {} {min:?} to {max:?}", between.join("|")));
                let latency = Latency { min: min.as_nanos() as shim::Nanos, max: max.as_nanos() as shim::Nanos };
                self.engine.set_latency(self.host(&between[0])?, self.host(&between[1])?, latency);
            }
            HostAction::Kill(name) => {
                let host = self.host(&name)?;
                if self.dead.insert(name.clone()) {
                    trace::record("world", &format!("~ kill {name}"));
                    self.engine.kill(host);
                }
            }
            HostAction::Restart(name) => {
                let host = self.host(&name)?;
                if self.dead.remove(&name) {
                    trace::record("world", &format!("~ restart {name}"));
                    self.engine.restart(host);
                }
            }
            HostAction::Backup => {
                trace::record("world", "~ backup");
                self.backup = Some(disk::copy());
            }
            HostAction::Restore { declared } => self.restore(declared)?,
            HostAction::Stall(is_stalled) => {
                trace::record("world", if is_stalled { "~ stall" } else { "~ resume" });
                self.database.is_stalled.store(is_stalled, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn give_key(&mut self, agent: &str, key: String) -> Result<(), Trouble> {
        self.cluster(agent)?.key.set(key);
        for name in (0..self.options.replicas).map(|index| hosts::replica_name(agent, index)) {
            self.act_on_hosts(HostAction::Kill(name.clone()))?;
            self.act_on_hosts(HostAction::Restart(name))?;
        }
        Ok(())
    }

    fn fail_cluster(&mut self, fault: &ClusterFault) -> Result<(), Trouble> {
        let kind = match (fault.status, fault.lose_answer, fault.cut, &fault.rewrite) {
            (Some(status), false, false, None) => Fault::Refuse { status, retry_after_secs: fault.retry_after },
            (None, true, false, None) => Fault::LoseAnswer,
            (None, false, true, None) => Fault::CutBeforeCommit,
            (None, false, false, Some(patch)) => Fault::Rewrite(patch.clone()),
            _ => {
                let reason = "fail takes exactly one of status, lose_answer, cut and rewrite";
                return Err(Trouble::Broken(reason.to_owned()));
            }
        };
        trace::record("world", &format!("~ fail {} {:?} {kind:?}", fault.cluster, fault.requests));
        let words = Words::parse(&fault.requests);
        self.cluster(&fault.cluster)?.gate.add_rule(Rule { words, fault: kind, times: fault.times });
        Ok(())
    }

    fn heal_cluster(&mut self, cluster: &str) -> Result<(), Trouble> {
        trace::record("world", &format!("~ heal {cluster}"));
        self.cluster(cluster)?.gate.clear_rules();
        Ok(())
    }

    fn writes(&mut self, cluster: &str) -> Result<Writes, Trouble> {
        Ok(self.cluster(cluster)?.written.iter().map(|write| (write.clone(), 1)).collect())
    }

    fn written(&mut self, cluster: &str) -> Result<Vec<String>, Trouble> {
        Ok(self.cluster(cluster)?.written.clone())
    }

    fn asked(&mut self, cluster: &str, words: &str) -> Result<Vec<Asked>, Trouble> {
        Ok(self.cluster(cluster)?.gate.asked(&Words::parse(words)))
    }
}
