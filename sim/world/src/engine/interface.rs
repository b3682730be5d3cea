//! Interface of an engine.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::sockets::HostNetwork;
use crate::host_panic::HostPanic;
use crate::net::{HostId, Latency};

/// Program of a host; called for its first start and for each restart.
pub type Program = Box<dyn Fn(HostNetwork) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Hosts that did something in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnteredHosts {
    /// Any of them may have.
    Any,
    /// Only these.
    Only(Vec<HostId>),
}

/// Hosts, the network between them, and time.
///
/// Everything that happens to a host happens between two steps, never inside one.
pub trait Engine {
    /// Adds a host and starts its program.
    fn add_host(&mut self, name: &str, program: Program) -> HostId;

    /// Returns the virtual time since the start.
    fn now(&self) -> Duration;

    /// Carries out the next event, but none after `limit`. Time moves to that event or to `limit`. Returns the hosts
    /// that did something, or the panic of one of them; after a panic the run has to end.
    fn step(&mut self, limit: Duration) -> Result<EnteredHosts, HostPanic>;

    /// Ends the process of a host at once, as SIGKILL does.
    fn kill(&mut self, host: HostId);

    /// Starts the program of a killed host again, with empty memory.
    fn restart(&mut self, host: HostId);

    /// Stops the process of a host, as SIGSTOP does: its connections stay open, and what arrives waits.
    fn pause(&mut self, host: HostId);

    /// Lets a paused process go on, as SIGCONT does.
    fn resume(&mut self, host: HostId);

    /// Cuts the network between two hosts in both directions.
    fn partition(&mut self, one: HostId, other: HostId);

    /// Repairs a partition.
    fn repair(&mut self, one: HostId, other: HostId);

    /// Breaks every open connection between two hosts; segments on their way are lost.
    fn sever(&mut self, one: HostId, other: HostId);

    /// Sets the latency between two hosts.
    fn set_latency(&mut self, one: HostId, other: HostId, latency: Latency);

    /// Notifies the engine that something outside of the network woke a task of this host.
    fn wake(&mut self, host: HostId);
}
