//! The turmoil arm: portable, ticking, and written by others, which is why it checks the fast one.
//!
//! Its network differs where TCP does not matter to our programs: under a partition a connect fails at once.
//! A kill drops the host's tasks, so destructors run: for a kill to the letter there is the fast arm.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use super::{Engine, Entered, HostId, Latency, Port, Program};
use crate::shim::{self, Nanos};

/// The resolution of time; every host is entered once in each.
const TICK: Duration = Duration::from_millis(10);
/// No run lasts longer.
const LONGEST_RUN: Duration = Duration::from_secs(60 * 60 * 24 * 365);
/// Segments and waiting connections per socket; a full backlog is a panic in turmoil.
const TCP_CAPACITY: usize = 1024;

/// See the module.
pub struct TurmoilEngine {
    sim: turmoil::Sim<'static>,
    names: Vec<String>,
    /// Pairs that a partition keeps apart.
    apart: BTreeSet<[HostId; 2]>,
    now: Duration,
}

impl TurmoilEngine {
    /// A world without hosts.
    pub fn new(seed: u64) -> Self {
        shim::set_now(0);
        let latency = Latency::default();
        let sim = turmoil::Builder::new()
            .tick_duration(TICK)
            .simulation_duration(LONGEST_RUN)
            .rng_seed(seed)
            .enable_random_order()
            .epoch(std::time::UNIX_EPOCH + Duration::from_secs(shim::EPOCH_SECONDS))
            .min_message_latency(Duration::from_nanos(latency.min))
            .max_message_latency(Duration::from_nanos(latency.max))
            .tcp_capacity(TCP_CAPACITY)
            .build();
        Self { sim, names: Vec::new(), apart: BTreeSet::new(), now: Duration::ZERO }
    }

    fn name(&self, host: HostId) -> String {
        self.names[host.0].clone()
    }

    fn tick(&mut self) {
        shim::set_now(self.now.as_nanos() as Nanos);
        if let Err(error) = self.sim.step() {
            panic!("a host of the simulation ended with an error: {error}");
        }
        self.now += TICK;
    }
}

impl Engine for TurmoilEngine {
    fn add_host(&mut self, name: &str, program: Program) -> HostId {
        let program = Rc::new(program);
        self.sim.host(name, move || {
            let process = program(Port::Turmoil);
            async move {
                process.await;
                Ok(())
            }
        });
        self.names.push(name.to_owned());
        HostId(self.names.len() - 1)
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn step(&mut self, limit: Duration) -> Entered {
        if self.now < limit {
            self.tick();
        }
        Entered::Any
    }

    fn kill(&mut self, host: HostId) {
        self.sim.crash(self.name(host));
    }

    fn restart(&mut self, host: HostId) {
        self.sim.bounce(self.name(host));
    }

    fn partition(&mut self, one: HostId, other: HostId) {
        self.apart.insert(pair(one, other));
        self.sim.partition(self.name(one), self.name(other));
    }

    fn repair(&mut self, one: HostId, other: HostId) {
        self.apart.remove(&pair(one, other));
        self.sim.repair(self.name(one), self.name(other));
    }

    fn sever(&mut self, one: HostId, other: HostId) {
        // turmoil breaks the streams of a partition for good, and delivers nothing that was on its way.
        if !self.apart.contains(&pair(one, other)) {
            self.partition(one, other);
            self.repair(one, other);
        }
    }

    fn set_latency(&mut self, one: HostId, other: HostId, latency: Latency) {
        let (one, other) = (self.name(one), self.name(other));
        self.sim.set_link_latency(one.clone(), other.clone(), Duration::from_nanos(latency.min));
        self.sim.set_link_max_message_latency(one, other, Duration::from_nanos(latency.max));
    }

    fn wake(&mut self, _: HostId) {
        // Every host is entered at every tick.
    }
}

fn pair(one: HostId, other: HostId) -> [HostId; 2] {
    [one.min(other), one.max(other)]
}
