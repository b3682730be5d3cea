//! What drives hosts through virtual time: one small interface, two arms.
//!
//! The fast arm enters a host only when something happens to it. The turmoil arm steps every host at every
//! tick; it is slower and portable, and it checks the first: both run the same programs.

mod fast;
mod port;
mod turmoil_arm;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use crate::net::{HostId, Latency};
pub use fast::FastEngine;
pub use port::{Connector, Listener, Port, Stream};
pub use turmoil_arm::TurmoilEngine;

/// What a process does from its start; called anew for each restart.
pub type Program = Box<dyn Fn(Port) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Which arm runs a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// One runtime per host on a shared virtual clock.
    Fast,
    /// The turmoil crate.
    Turmoil,
}

impl Arm {
    /// Both, in the order in which they are shown.
    pub const ALL: [Arm; 2] = [Arm::Fast, Arm::Turmoil];

    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Fast => "fast",
            Arm::Turmoil => "turmoil",
        }
    }

    /// A world without hosts. Call it on a thread that [`crate::isolate`] made.
    pub fn engine(self, seed: u64) -> Box<dyn Engine> {
        match self {
            Arm::Fast => Box::new(FastEngine::new(seed)),
            Arm::Turmoil => Box::new(TurmoilEngine::new(seed)),
        }
    }
}

/// The hosts that did something in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    /// Any of them may have.
    Any,
    /// Only these.
    Only(Vec<HostId>),
}

/// Hosts, the network between them, and time.
///
/// Everything that happens to a host happens between two steps, never inside one.
pub trait Engine {
    /// Adds a machine and starts its program.
    fn add_host(&mut self, name: &str, program: Program) -> HostId;

    /// Virtual time since the start.
    fn now(&self) -> Duration;

    /// Lets the next thing happen, but nothing after `limit`; time ends up at that thing or at `limit`.
    /// Tells which hosts did something.
    fn step(&mut self, limit: Duration) -> Entered;

    /// Ends the process of a host at once, as SIGKILL does.
    fn kill(&mut self, host: HostId);

    /// Starts the program of a killed host again, with empty memory.
    fn restart(&mut self, host: HostId);

    /// Cuts the way between two machines, both directions.
    fn partition(&mut self, one: HostId, other: HostId);

    /// Mends it.
    fn repair(&mut self, one: HostId, other: HostId);

    /// Breaks every open connection between two machines, with what is on its way.
    fn sever(&mut self, one: HostId, other: HostId);

    /// Sets how long packets take between two machines.
    fn set_latency(&mut self, one: HostId, other: HostId, latency: Latency);

    /// Says that something outside of the network woke a task of this host.
    fn wake(&mut self, host: HostId);
}
