//! Agents as the fleet overview shows them.

use jiff::Timestamp;
use sindri_model::wire::{Agent, HeartbeatReport};

/// A received heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Time of its arrival.
    pub received_at: Timestamp,
    /// Its content.
    pub report: HeartbeatReport,
}

/// State of one agent in the fleet.
#[derive(Clone, Debug)]
pub struct FleetEntry {
    /// The agent. A deleted one is listed only while a removal on its cluster is unconfirmed.
    pub agent: Agent,
    /// Time of its last event.
    pub last_event_at: Option<Timestamp>,
    /// Number of revisions and removals of its target state that it has not confirmed.
    pub pending: i64,
    /// Number of newest revisions whose health it reports as degraded.
    pub degraded: i64,
    /// Number of newest revisions whose health it reports as failing.
    pub failing: i64,
}

/// Numbers of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Agents that are active and not deleted.
    pub active_agents: i64,
    /// Stacks that are not deleted.
    pub stacks: i64,
    /// Revisions and deletion markers.
    pub revisions: i64,
}

/// Stacks and revisions of a generator in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorUsage {
    /// Stacks that are not deleted.
    pub stacks: u64,
    /// Bytes of all stored revisions, those of deleted stacks included.
    pub revision_bytes: u64,
}
