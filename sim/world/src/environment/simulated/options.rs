//! Options of a simulated world.

use std::time::Duration;

use crate::engine::EngineKind;
use crate::exploration::FaultKind;
use crate::scenario::Fleet;

/// Options of a simulated world.
#[derive(Clone, Debug)]
pub struct Options {
    /// Engine that runs it.
    pub engine: EngineKind,
    /// Seed, which decides everything.
    pub seed: u64,
    /// Agents and brokers.
    pub fleet: Fleet,
    /// Polling interval of the agents.
    pub polling_interval: Duration,
    /// Number of the event of the agents, counted from 1, at which an agent is killed.
    pub kill_at: Option<u64>,
    /// Faults of the exploration.
    pub faults: Vec<FaultKind>,
}

impl Options {
    /// Creates the options of a world without faults.
    pub fn new(engine: EngineKind, seed: u64, fleet: Fleet, polling_interval: Duration) -> Self {
        Self { engine, seed, fleet, polling_interval, kill_at: None, faults: Vec::new() }
    }
}
