//! The world: its API servers and guests, its time, and the oracles that check every write.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sindri_apiserver::{ApiServer, ControllerDelays, SharedServer, StoredKey, Write};
use sindri_world::engine::{Engine, EngineKind, HostId};
use sindri_world::http_faults::{FaultInjector, RecordedRequest, RequestPattern};
use sindri_world::{api_server, isolate, rng::SeededRng, trace, wall_time};

use super::journal::{GUEST, describe};
use super::recovery::Recovery;

/// Number of trace lines that are printed when a simulation fails.
const TRACE_LINES: usize = 80;

/// Every object of an API server, as it was before the write that is checked.
pub type State = BTreeMap<StoredKey, Arc<Value>>;
/// Function that checks a write, and returns a description of a violation.
pub type Oracle = Box<dyn FnMut(&Write, &State) -> Result<(), String>>;

/// An API server of the world.
pub(super) struct Api {
    pub(super) host: HostId,
    pub(super) server: SharedServer,
    pub(super) injector: Arc<FaultInjector>,
    writes: Vec<Write>,
    state: State,
    oracles: Vec<Oracle>,
}

/// A host with a controller.
pub(super) struct Guest {
    pub(super) host: HostId,
    pub(super) is_dead: bool,
}

/// A simulated world with API servers and guests.
pub struct World {
    pub(super) seed: u64,
    pub(super) engine: Box<dyn Engine>,
    pub(super) apis: BTreeMap<String, Api>,
    pub(super) guests: BTreeMap<String, Guest>,
    /// Scheduled recoveries, each with its time.
    pub(super) recoveries: Vec<(Duration, Recovery)>,
    /// Pairs of hosts that are partitioned.
    pub(super) partitioned: Vec<[HostId; 2]>,
    /// Chooses partitions, while they are enabled.
    pub(super) partition_rng: Option<SeededRng>,
    /// Time of the next partition.
    pub(super) partition_due: Duration,
    /// Chooses how long a killed guest is down.
    pub(super) downtime_rng: SeededRng,
    violations: Vec<String>,
}

/// Runs `body` in a new world, in which the seed decides everything. If it panics, the end of the trace is printed.
pub fn simulate<T: Send>(engine: EngineKind, seed: u64, body: impl FnOnce(&mut World) -> T + Send) -> T {
    isolate(seed, move || {
        let result = catch_unwind(AssertUnwindSafe(|| body(&mut World::new(engine, seed))));
        result.unwrap_or_else(|panic| {
            let trace = trace::take();
            let lines = trace.lines();
            eprintln!("{} engine, seed {seed}:", engine.name());
            lines.iter().skip(lines.len().saturating_sub(TRACE_LINES)).for_each(|line| eprintln!("{line}"));
            resume_unwind(panic)
        })
    })
}

impl World {
    fn new(engine: EngineKind, seed: u64) -> Self {
        Self {
            seed,
            engine: engine.engine(seed),
            apis: BTreeMap::new(),
            guests: BTreeMap::new(),
            recoveries: Vec::new(),
            partitioned: Vec::new(),
            partition_rng: None,
            partition_due: Duration::ZERO,
            downtime_rng: SeededRng::new(seed, "harness"),
            violations: Vec::new(),
        }
    }

    /// Adds an API server on a host of this name. It has no workload controllers: no pods are created.
    pub fn add_api(&mut self, name: &str) {
        self.add_server(name, |server| server);
    }

    /// Adds an API server with the controllers that create pods, and with nodes on which pods run.
    pub fn add_api_with_nodes(&mut self, name: &str, nodes: &[&str]) {
        self.add_server(name, |server| server.with_workloads().with_kubelet(wall_time(), nodes));
    }

    /// Adds an API server without any controller, in place of the API of another system.
    pub fn add_external_api(&mut self, name: &str) {
        self.add_server(name, ApiServer::without_controllers);
    }

    fn add_server(&mut self, name: &str, set_up: impl FnOnce(ApiServer) -> ApiServer) {
        let uid_seed = SeededRng::new(self.seed, name).next_u64();
        let delays = ControllerDelays::default().with_crd_gap();
        let server = SharedServer::new(set_up(ApiServer::with_delays(uid_seed, wall_time(), delays)));
        let injector = Arc::new(FaultInjector::for_client(name.to_owned(), GUEST));
        let host = self.engine.add_host(name, api_server(server.clone(), injector.clone()));
        let (writes, state, oracles) = (Vec::new(), State::new(), Vec::new());
        self.apis.insert(name.to_owned(), Api { host, server, injector, writes, state, oracles });
        self.collect_writes();
    }

    /// Adds an oracle that checks every write to an API server from now on.
    pub fn add_oracle(&mut self, api: &str, oracle: impl FnMut(&Write, &State) -> Result<(), String> + 'static) {
        self.api_mut(api).oracles.push(Box::new(oracle));
    }

    /// Returns the violations that oracles have found so far.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Returns every write to an API server so far.
    pub fn writes(&self, api: &str) -> &[Write] {
        &self.api(api).writes
    }

    /// Returns the requests of guests to an API server that match a pattern; see [`RequestPattern`].
    pub fn requests(&self, api: &str, pattern: &str) -> Vec<RecordedRequest> {
        self.api(api).injector.requests(&RequestPattern::parse(pattern))
    }

    /// Returns the number of requests of guests to an API server.
    pub fn request_count(&self, api: &str) -> usize {
        self.api(api).injector.request_count()
    }

    /// Returns the virtual time since the start.
    pub fn now(&self) -> Duration {
        self.engine.now()
    }

    /// Advances virtual time.
    pub fn advance(&mut self, by: Duration) {
        let end = self.now() + by;
        while self.now() < end {
            self.step(end);
        }
    }

    /// Advances virtual time until a condition holds, at most by `limit`; returns true if it holds.
    pub fn advance_until(&mut self, limit: Duration, mut holds: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.now() + limit;
        while self.now() < end {
            if holds(self) {
                return true;
            }
            self.step(end);
        }
        holds(self)
    }

    /// Like [`World::advance_until`], for a condition that depends on objects only: it is checked after each write.
    pub fn advance_until_written(&mut self, limit: Duration, mut holds: impl FnMut(&mut World) -> bool) -> bool {
        let mut checked = None;
        self.advance_until(limit, |world| {
            let written = world.apis.values().map(|api| api.writes.len()).sum::<usize>();
            checked.replace(written) != Some(written) && holds(world)
        }) || holds(self)
    }

    /// Executes the next event, if it is not after `limit`.
    pub fn step(&mut self, limit: Duration) {
        let limit = self.next_fault().into_iter().fold(limit, Duration::min).max(self.now());
        self.engine.step(limit).unwrap_or_else(|panic| panic!("{panic}"));
        self.collect_writes();
        self.kill_chosen_guests();
        self.begin_partition();
        self.run_recoveries();
    }

    /// Reads new writes from the API servers, and passes them to the trace and the oracles.
    pub(super) fn collect_writes(&mut self) {
        for (name, api) in &mut self.apis {
            for write in api.server.with(ApiServer::take_journal) {
                trace::record(name, &format!("= {}", describe(&write)));
                for oracle in &mut api.oracles {
                    if let Err(violation) = oracle(&write, &api.state) {
                        trace::record("oracle", &violation);
                        self.violations.push(violation);
                    }
                }
                match &write.after {
                    Some(object) => drop(api.state.insert((*write.key).clone(), object.clone())),
                    None => drop(api.state.remove(&*write.key)),
                }
                api.writes.push(write);
            }
        }
    }

    pub(super) fn api(&self, name: &str) -> &Api {
        self.apis.get(name).unwrap_or_else(|| panic!("there is no API server {name:?}"))
    }

    fn api_mut(&mut self, name: &str) -> &mut Api {
        self.apis.get_mut(name).unwrap_or_else(|| panic!("there is no API server {name:?}"))
    }
}
