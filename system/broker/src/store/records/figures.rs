//! Figures of a store for metrics.

/// Largest number to which rows are counted, so that a long queue costs no long query.
pub(crate) const COUNTED_MAX: i64 = 100_000;

/// Numbers of records in certain states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Active agents whose heartbeats arrive.
    pub agents_online: i64,
    /// Active agents whose heartbeats have stopped.
    pub agents_offline: i64,
    /// Pairs of an agent and a stack whose newest revision the agent has not reported on.
    pub stacks_behind: i64,
    /// Pairs of an agent and a stack whose newest revision failed there.
    pub stacks_failed: i64,
    /// Approvals that wait for a decision, counted up to 100,000.
    pub approvals_pending: i64,
    /// Webhook messages that wait, counted up to 100,000.
    pub deliveries_pending: i64,
}

/// Use of the resources of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseUsage {
    /// Calls that wait for the database or use it now.
    pub calls: usize,
    /// Connections in use; None: the database is a file.
    pub connections_in_use: Option<usize>,
    /// Size of the database file with its write-ahead log, in bytes; None: the database is on a server, or in memory.
    pub bytes: Option<u64>,
}
