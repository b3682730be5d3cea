//! A small world for a controller: API servers, machines on which guests run, somebody else who uses the same API
//! servers, faults, and judges who see every write.
//!
//! The engine, the network and the simulated API server are the ones that broker and agent are tested with.

mod faults;
mod others;
mod process;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sindri_apiserver::{Actor, ApiServer, SharedServer, StoredKey, Write};
pub use sindri_world::engine::EngineKind;
use sindri_world::engine::{Engine, HostId};
use sindri_world::http_faults::{FaultInjector, RecordedRequest, RequestPattern};
use sindri_world::{api_server, isolate, rng::SeededRng, trace, wall_time};

use faults::Relief;
pub use process::Process;
pub use sindri_apiserver::Fault;
pub use sindri_world::exploration::{FaultKind, RequestFault};

/// How every guest introduces itself; what follows is its name.
pub const GUEST: &str = "guest/";
/// How many lines of the trace are printed when a play fails.
const LINES_SHOWN: usize = 80;

/// Every object of an API server, as it was before the write that is judged.
pub type State = BTreeMap<StoredKey, Arc<Value>>;
/// Says what is wrong with a write, if anything is.
pub type Judge = Box<dyn FnMut(&Write, &State) -> Result<(), String>>;

struct Api {
    host: HostId,
    server: SharedServer,
    gate: Arc<FaultInjector>,
    writes: Vec<Write>,
    state: State,
    judges: Vec<Judge>,
}

struct Guest {
    host: HostId,
    is_dead: bool,
}

/// See the module.
pub struct World {
    seed: u64,
    engine: Box<dyn Engine>,
    apis: BTreeMap<String, Api>,
    guests: BTreeMap<String, Guest>,
    relief: Vec<(Duration, Relief)>,
    cut: Vec<[HostId; 2]>,
    partitions: Option<SeededRng>,
    partition_due: Duration,
    chance: SeededRng,
    violations: Vec<String>,
}

/// Plays in a world of its own, in which the seed decides everything. If it fails, the end of the trace is printed.
pub fn play<T: Send>(arm: EngineKind, seed: u64, body: impl FnOnce(&mut World) -> T + Send) -> T {
    isolate(seed, move || {
        let played = catch_unwind(AssertUnwindSafe(|| body(&mut World::new(arm, seed))));
        played.unwrap_or_else(|panic| {
            let trace = trace::take();
            let lines = trace.lines();
            eprintln!("{} arm, seed {seed}:", arm.name());
            lines.iter().skip(lines.len().saturating_sub(LINES_SHOWN)).for_each(|line| eprintln!("{line}"));
            resume_unwind(panic)
        })
    })
}

impl World {
    fn new(arm: EngineKind, seed: u64) -> Self {
        Self {
            seed,
            engine: arm.engine(seed),
            apis: BTreeMap::new(),
            guests: BTreeMap::new(),
            relief: Vec::new(),
            cut: Vec::new(),
            partitions: None,
            partition_due: Duration::ZERO,
            chance: SeededRng::new(seed, "harness"),
            violations: Vec::new(),
        }
    }

    /// Adds an API server on a machine of this name.
    pub fn add_api(&mut self, name: &str) {
        let identities = SeededRng::new(self.seed, name).next_u64();
        let server = SharedServer::new(ApiServer::new(identities, wall_time()));
        let gate = Arc::new(FaultInjector::for_client(name.to_owned(), GUEST));
        let host = self.engine.add_host(name, api_server(server.clone(), gate.clone()));
        let (writes, state, judges) = (Vec::new(), State::new(), Vec::new());
        self.apis.insert(name.to_owned(), Api { host, server, gate, writes, state, judges });
        self.collect_writes();
    }

    /// Lets someone judge every write to an API server from here on.
    pub fn judge(&mut self, api: &str, judge: impl FnMut(&Write, &State) -> Result<(), String> + 'static) {
        self.api_mut(api).judges.push(Box::new(judge));
    }

    /// What the judges found so far.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Every write to an API server so far.
    pub fn writes(&self, api: &str) -> &[Write] {
        &self.api(api).writes
    }

    /// What guests asked an API server that has these words; see [`RequestPattern`].
    pub fn asked(&self, api: &str, words: &str) -> Vec<RecordedRequest> {
        self.api(api).gate.requests(&RequestPattern::parse(words))
    }

    /// How many requests guests made to an API server.
    pub fn request_count(&self, api: &str) -> usize {
        self.api(api).gate.request_count()
    }

    /// Virtual time since the start.
    pub fn now(&self) -> Duration {
        self.engine.now()
    }

    /// Lets time pass.
    pub fn advance(&mut self, by: Duration) {
        let end = self.now() + by;
        while self.now() < end {
            self.step(end);
        }
    }

    /// Lets time pass until something holds, but no longer than this; tells whether it does.
    pub fn advance_until(&mut self, longest: Duration, mut holds: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.now() + longest;
        while self.now() < end {
            if holds(self) {
                return true;
            }
            self.step(end);
        }
        holds(self)
    }

    /// The same for what can change only when something is written, which is looked at only then.
    pub fn advance_until_written(&mut self, longest: Duration, mut holds: impl FnMut(&mut World) -> bool) -> bool {
        let mut seen = None;
        self.advance_until(longest, |world| {
            let written = world.apis.values().map(|api| api.writes.len()).sum::<usize>();
            seen.replace(written) != Some(written) && holds(world)
        }) || holds(self)
    }

    /// Lets the next thing happen, but nothing after `limit`.
    pub fn step(&mut self, limit: Duration) {
        let limit = self.next_fault().into_iter().fold(limit, Duration::min).max(self.now());
        self.engine.step(limit).unwrap_or_else(|panic| panic!("{panic}"));
        self.collect_writes();
        self.kill_whom_the_gates_chose();
        self.strike();
        self.give_relief();
    }

    fn collect_writes(&mut self) {
        for (name, api) in &mut self.apis {
            for write in api.server.with(ApiServer::take_journal) {
                trace::record(name, &format!("= {}", describe(&write)));
                for judge in &mut api.judges {
                    if let Err(violation) = judge(&write, &api.state) {
                        trace::record("judge", &violation);
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

    fn api(&self, name: &str) -> &Api {
        self.apis.get(name).unwrap_or_else(|| panic!("there is no API server {name:?}"))
    }

    fn api_mut(&mut self, name: &str) -> &mut Api {
        self.apis.get_mut(name).unwrap_or_else(|| panic!("there is no API server {name:?}"))
    }
}

/// Whether a guest made this write.
pub fn is_guests(write: &Write) -> bool {
    matches!(&write.actor, Actor::Client { user_agent, .. } if user_agent.starts_with(GUEST))
}

/// How a write reads in the trace: `Update deployments default/shop by guest/database at 31`.
pub fn describe(write: &Write) -> String {
    let who = match &write.actor {
        Actor::Client { user_agent, .. } => user_agent.as_str(),
        Actor::Controller(name) => name,
    };
    let key = &write.key;
    let namespace = key.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let part = if write.subresource.is_empty() { String::new() } else { format!("/{}", write.subresource) };
    format!("{:?} {}{part} {namespace}{} by {who} at {}", write.verb, key.plural, key.name, write.resource_version)
}
