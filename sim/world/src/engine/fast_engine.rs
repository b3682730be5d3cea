//! The fast engine: a tokio runtime per host, all of them on one virtual clock, entered only when there is something
//! to do.
//!
//! The runtime that is entered is the host: every task that a library spawns belongs to it, and setting the runtime aside
//! is a kill to the letter (no destructor runs before the end of the run). An idle runtime parks in a timed futex wait; the libc shim catches that
//! wait, which reveals the next timer, and the hook on unpark lets `block_on` return. This depends on how tokio parks,
//! so its version is pinned and the test `timers_are_exact` checks it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, RngSeed, Runtime, UnhandledPanic};

use super::interface::{Engine, EnteredHosts, Program};
use super::sockets::HostNetwork;
use crate::host_panic::{self, HostPanic};
use crate::libc_shim::{self, Nanos};
use crate::net::{HostId, Latency, Network, SharedNetwork};
use crate::rng::SeededRng;
use crate::trace;

const MILLISECOND: Nanos = 1_000_000;
/// Keeps every park a timed one; tokio's timer wheel holds about two years.
const LONGEST_TIMER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

thread_local! {
    static ROOT: RefCell<Option<Waker>> = const { RefCell::new(None) };
    static IS_IDLE: Cell<bool> = const { Cell::new(false) };
}

struct Host {
    name: String,
    program: Program,
    /// `None` while the host is dead.
    runtime: Option<Runtime>,
    started: Nanos,
    incarnation: u64,
    next_timer: Option<Nanos>,
}

/// Engine that enters a host only when something happens to it.
pub struct FastEngine {
    seed: u64,
    now: Nanos,
    network: SharedNetwork,
    hosts: Vec<Host>,
    timers: BTreeSet<(Nanos, HostId)>,
    order: SeededRng,
    /// Hosts whose process is stopped; true if something has happened to it since.
    paused: BTreeMap<HostId, bool>,
    /// Runtimes of killed hosts. No destructor runs before the end of the run.
    killed: Vec<Runtime>,
}

impl FastEngine {
    /// Creates an engine without hosts.
    pub fn new(seed: u64) -> Self {
        libc_shim::set_now(0);
        Self {
            seed,
            now: 0,
            network: SharedNetwork::new(Network::new(seed)),
            hosts: Vec::new(),
            timers: BTreeSet::new(),
            order: SeededRng::new(seed, "order"),
            paused: BTreeMap::new(),
            killed: Vec::new(),
        }
    }

    fn boot(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0];
        host.incarnation += 1;
        host.started = self.now;
        let runtime = build_runtime(SeededRng::new(self.seed, &format!("runtime {} {}", id.0, host.incarnation)));
        runtime.spawn(async { tokio::time::sleep(LONGEST_TIMER).await });
        runtime.spawn((host.program)(HostNetwork::Fast(self.network.handle_for(id))));
        host.runtime = Some(runtime);
        self.network.lock().boot(id);
    }

    fn forget_timer(&mut self, id: HostId) {
        if let Some(due) = self.hosts[id.0].next_timer.take() {
            self.timers.remove(&(due, id));
        }
    }

    /// Lets a host do everything it can at this instant.
    fn enter(&mut self, id: HostId) -> Result<(), HostPanic> {
        self.forget_timer(id);
        let host = &mut self.hosts[id.0];
        let Some(runtime) = &host.runtime else { return Ok(()) };
        trace::enter_host(&host.name);
        IS_IDLE.set(false);
        let idle = poll_fn(|context| {
            if IS_IDLE.get() {
                return Poll::Ready(());
            }
            ROOT.set(Some(context.waker().clone()));
            Poll::Pending
        });
        let (entered, deadline) = libc_shim::catch_park(|| host_panic::contain(|| runtime.block_on(idle)));
        ROOT.set(None);
        if let Err(panic) = entered {
            self.kill(id);
            // Its tasks are in no state in which their destructors could run.
            std::mem::forget(self.killed.pop());
            return Err(panic);
        }
        assert_eq!(
            runtime.metrics().num_blocking_threads(),
            0,
            "a simulated host must not use threads: spawn_blocking, tokio::fs and lookup_host do"
        );
        let deadline = deadline.expect("an idle runtime has parked");
        // tokio counts whole milliseconds since the start of the runtime, and asks for a wait that is a
        // number of those: the part of a millisecond that has passed already belongs to the wait.
        let due = deadline - (self.now - host.started) % MILLISECOND;
        host.next_timer = Some(due);
        self.timers.insert((due, id));
        Ok(())
    }

    fn take_due(&mut self) -> Vec<HostId> {
        let mut due = self.network.lock().take_runnable();
        while let Some((at, id)) = self.timers.first().copied().filter(|(at, _)| *at <= self.now) {
            self.timers.remove(&(at, id));
            self.hosts[id.0].next_timer = None;
            due.insert(id);
        }
        for (id, is_due) in &mut self.paused {
            *is_due |= due.remove(id);
        }
        let mut due: Vec<_> = due.into_iter().collect();
        self.order.shuffle(&mut due);
        due
    }

    fn change_both_directions(&mut self, one: HostId, other: HostId, change: impl Fn(&mut Network, HostId, HostId)) {
        let mut network = self.network.lock();
        change(&mut network, one, other);
        change(&mut network, other, one);
    }
}

impl Engine for FastEngine {
    fn add_host(&mut self, name: &str, program: Program) -> HostId {
        let id = self.network.lock().add_host(name);
        assert_eq!(id.0, self.hosts.len(), "hosts are numbered in the order of their arrival");
        let name = name.to_owned();
        self.hosts.push(Host { name, program, runtime: None, started: 0, incarnation: 0, next_timer: None });
        self.boot(id);
        id
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    fn step(&mut self, limit: Duration) -> Result<EnteredHosts, HostPanic> {
        let limit = limit.as_nanos() as Nanos;
        let due = self.take_due();
        if due.is_empty() {
            let events = self.network.lock().next_due();
            let timers = self.timers.first().map(|(at, _)| *at);
            let next = events.into_iter().chain(timers).min().unwrap_or(limit).min(limit);
            self.now = self.now.max(next);
            libc_shim::set_now(self.now);
        }
        due.iter().try_for_each(|id| self.enter(*id))?;
        self.network.lock().advance(self.now);
        Ok(EnteredHosts::Only(due))
    }

    fn kill(&mut self, host: HostId) {
        self.forget_timer(host);
        self.paused.remove(&host);
        self.network.lock().kill(host);
        // Not dropped: a killed process runs no destructor.
        self.killed.extend(self.hosts[host.0].runtime.take());
    }

    fn restart(&mut self, host: HostId) {
        assert!(self.hosts[host.0].runtime.is_none(), "only a killed host is restarted");
        self.boot(host);
    }

    fn pause(&mut self, host: HostId) {
        if self.hosts[host.0].runtime.is_some() {
            self.paused.entry(host).or_default();
        }
    }

    fn resume(&mut self, host: HostId) {
        if self.paused.remove(&host).unwrap_or_default() {
            self.wake(host);
        }
    }

    fn partition(&mut self, one: HostId, other: HostId) {
        self.change_both_directions(one, other, |network, from, to| network.set_up(from, to, false));
    }

    fn repair(&mut self, one: HostId, other: HostId) {
        self.change_both_directions(one, other, |network, from, to| network.set_up(from, to, true));
    }

    fn sever(&mut self, one: HostId, other: HostId) {
        self.network.lock().sever(one, other);
    }

    fn set_latency(&mut self, one: HostId, other: HostId, latency: Latency) {
        self.change_both_directions(one, other, |network, from, to| network.set_latency(from, to, latency));
    }

    fn wake(&mut self, host: HostId) {
        self.network.lock().mark_runnable(host);
    }
}

impl Drop for FastEngine {
    fn drop(&mut self) {
        // Hosts go before the network that their streams refer to. The run is over, so that destructors of killed hosts
        // change nothing any more: they give back the memory.
        self.hosts.clear();
        self.killed.clear();
    }
}

fn build_runtime(mut seed: SeededRng) -> Runtime {
    let mut bytes = [0; 32];
    seed.fill(&mut bytes);
    Builder::new_current_thread()
        .enable_time()
        .rng_seed(RngSeed::from_bytes(&bytes))
        // A host whose task panicked must not go on half-alive.
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .on_thread_unpark(|| {
            if libc_shim::has_caught_park() {
                IS_IDLE.set(true);
                ROOT.with_borrow(|root| root.as_ref().map(Waker::wake_by_ref));
            }
        })
        .build()
        .expect("a runtime without an I/O driver asks the system for nothing")
}
