//! Committed changes that invalidate what brokers cache.

use std::sync::Arc;

use sindri_model::{AgentId, Epoch, Sequence};

/// Epoch of the database and the last number of its counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePosition {
    /// 1 + number of restores.
    pub epoch: Epoch,
    /// Last number that the counter has issued.
    pub latest: Sequence,
}

/// Origin and counter of a database that may have been replaced by another one, or by an older state of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreEvidence {
    /// System identifier and timeline of the server on which the database is now, if they can be read.
    pub origin: Option<String>,
    /// Highest number of the counter that was committed before.
    pub seen: Sequence,
}

/// A committed change of something that brokers cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreChange {
    /// Target state or status of an agent, with the new version of its target state.
    TargetState(AgentId, Sequence),
    /// There is a new proposal for an agent.
    Proposal(AgentId),
    /// A key was deleted.
    Keys,
    /// A webhook message was queued.
    Deliveries,
    /// A new epoch began.
    Epoch,
}

/// Changes since a position of the counter.
#[derive(Clone, Debug)]
pub struct ChangesSince {
    /// Position from which to continue next time.
    pub latest: Sequence,
    /// The changes.
    pub changes: Vec<StoreChange>,
}

/// Receiver of the changes that a store commits for its own broker, called before the call that made them returns.
pub type ChangeObserver = Arc<dyn Fn(&[StoreChange]) + Send + Sync>;
