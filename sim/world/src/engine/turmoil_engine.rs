//! The turmoil engine: portable, driven by ticks, and independent of our code, so it checks the fast engine.
//!
//! It cannot stop a process: a paused one goes on, and its packets wait. Its network differs in ways that do not matter to our programs: under a partition a connect fails at once. A kill
//! drops the tasks of the host, so destructors run; in the fast engine they do not.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use super::interface::{Engine, EnteredHosts, Program};
use super::sockets::HostNetwork;
use crate::host_panic::{self, HostPanic};
use crate::libc_shim::{self, Nanos};
use crate::net::{HostId, Latency};

/// Resolution of time; every host is entered once per tick.
const TICK: Duration = Duration::from_millis(10);
/// Longest run.
const LONGEST_RUN: Duration = Duration::from_secs(60 * 60 * 24 * 365);
/// Segments and waiting connections per socket; turmoil panics on a full backlog.
const TCP_CAPACITY: usize = 1024;

/// Engine on top of turmoil.
pub struct TurmoilEngine {
    /// `None` after the panic of a host.
    sim: Option<turmoil::Sim<'static>>,
    names: Vec<String>,
    /// Pairs of hosts that a partition separates.
    partitions: BTreeSet<[HostId; 2]>,
    now: Duration,
}

impl TurmoilEngine {
    /// Creates an engine without hosts.
    pub fn new(seed: u64) -> Self {
        libc_shim::set_now(0);
        let latency = Latency::default();
        let sim = turmoil::Builder::new()
            .tick_duration(TICK)
            .simulation_duration(LONGEST_RUN)
            .rng_seed(seed)
            .enable_random_order()
            .epoch(std::time::UNIX_EPOCH + Duration::from_secs(libc_shim::EPOCH_SECONDS))
            .min_message_latency(Duration::from_nanos(latency.min))
            .max_message_latency(Duration::from_nanos(latency.max))
            .tcp_capacity(TCP_CAPACITY)
            .build();
        Self { sim: Some(sim), names: Vec::new(), partitions: BTreeSet::new(), now: Duration::ZERO }
    }

    fn name(&self, host: HostId) -> String {
        self.names[host.0].clone()
    }

    fn sim(&mut self) -> &mut turmoil::Sim<'static> {
        self.sim.as_mut().expect("a run ends with the first panic of a host")
    }

    fn tick(&mut self) -> Result<(), HostPanic> {
        libc_shim::set_now(self.now.as_nanos() as Nanos);
        let ticked = host_panic::contain(|| self.sim().step());
        match ticked {
            Ok(Ok(_)) => {
                self.now += TICK;
                Ok(())
            }
            // Programs of hosts have no error to return.
            Ok(Err(error)) => panic!("turmoil ended the simulation: {error}"),
            Err(panic) => {
                // Not dropped: its runtimes stopped in the middle of a step.
                std::mem::forget(self.sim.take());
                Err(panic)
            }
        }
    }
}

impl Engine for TurmoilEngine {
    fn add_host(&mut self, name: &str, program: Program) -> HostId {
        let program = Rc::new(program);
        self.sim().host(name, move || {
            let process = program(HostNetwork::Turmoil);
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

    fn step(&mut self, limit: Duration) -> Result<EnteredHosts, HostPanic> {
        if self.now < limit {
            self.tick()?;
        }
        Ok(EnteredHosts::Any)
    }

    fn kill(&mut self, host: HostId) {
        // A runtime drops its tasks in an order that depends on the number of tasks that other runs of this process have
        // spawned. The packets that they send then must not reach the network, where each takes a latency from the seed.
        let others: Vec<HostId> = (0..self.names.len()).map(HostId).filter(|other| *other != host).collect();
        let connected: Vec<HostId> =
            others.into_iter().filter(|other| !self.partitions.contains(&pair(host, *other))).collect();
        connected.iter().for_each(|other| self.partition(host, *other));
        let name = self.name(host);
        self.sim().crash(name);
        connected.iter().for_each(|other| self.repair(host, *other));
    }

    fn restart(&mut self, host: HostId) {
        let name = self.name(host);
        self.sim().bounce(name);
    }

    fn pause(&mut self, host: HostId) {
        let name = self.name(host);
        let others: Vec<String> = self.names.iter().filter(|other| **other != name).cloned().collect();
        others.into_iter().for_each(|other| self.sim().hold(name.clone(), other));
    }

    fn resume(&mut self, host: HostId) {
        let name = self.name(host);
        let others: Vec<String> = self.names.iter().filter(|other| **other != name).cloned().collect();
        others.into_iter().for_each(|other| self.sim().release(name.clone(), other));
    }

    fn partition(&mut self, one: HostId, other: HostId) {
        self.partitions.insert(pair(one, other));
        let (one, other) = (self.name(one), self.name(other));
        self.sim().partition(one, other);
    }

    fn repair(&mut self, one: HostId, other: HostId) {
        self.partitions.remove(&pair(one, other));
        let (one, other) = (self.name(one), self.name(other));
        self.sim().repair(one, other);
    }

    fn sever(&mut self, one: HostId, other: HostId) {
        // turmoil breaks the streams of a partition for good, and delivers nothing that was on its way.
        if !self.partitions.contains(&pair(one, other)) {
            self.partition(one, other);
            self.repair(one, other);
        }
    }

    fn set_latency(&mut self, one: HostId, other: HostId, latency: Latency) {
        let (one, other) = (self.name(one), self.name(other));
        self.sim().set_link_latency(one.clone(), other.clone(), Duration::from_nanos(latency.min));
        self.sim().set_link_max_message_latency(one, other, Duration::from_nanos(latency.max));
    }

    fn wake(&mut self, _: HostId) {
        // Every host is entered at every tick.
    }
}

fn pair(one: HostId, other: HostId) -> [HostId; 2] {
    [one.min(other), one.max(other)]
}
