//! State of the broker in memory: caches of the store, so that an idle poll reads no table, and heartbeats and
//! failed logins that are not stored yet.
//!
//! Cache entries may be dropped at any time, and are dropped as soon as the store reports a change.

mod etag;
mod failed_logins;
mod freshness;
mod heartbeats;
mod keys;
mod people;
mod target_states;

use std::sync::Arc;

pub(crate) use etag::{EtagKey, matches_if_none_match};
pub(crate) use failed_logins::FailedLogins;
pub(crate) use freshness::Freshness;
pub(crate) use heartbeats::HeartbeatBuffer;
pub(crate) use keys::KeyCache;
pub(crate) use people::KnownPeople;
pub(crate) use target_states::{CachedTargetState, RevisionRanges, TargetStateCache};
use tokio::sync::Notify;

use crate::store::{ChangeObserver, StoreChange};

/// In-memory state of one broker process.
#[derive(Default)]
pub(crate) struct Memory {
    pub freshness: Freshness,
    pub target_states: TargetStateCache,
    pub keys: KeyCache,
    pub people: KnownPeople,
    pub heartbeats: HeartbeatBuffer,
    pub failed_logins: FailedLogins,
    /// Notified when there may be webhook deliveries to send.
    pub deliveries: Notify,
}

impl Memory {
    /// Drops the entries that have changed and wakes the requests that wait for them.
    pub(crate) fn apply_changes(&self, changes: &[StoreChange]) {
        // First: a poll that the change of its agent wakes checks its key again.
        if changes.contains(&StoreChange::Keys) {
            self.keys.invalidate();
            self.people.invalidate();
        }
        for change in changes {
            match change {
                StoreChange::TargetState(agent, _) | StoreChange::Proposal(agent) => {
                    self.target_states.invalidate(*agent);
                }
                StoreChange::Keys => {}
                StoreChange::Deliveries => self.deliveries.notify_one(),
                StoreChange::Epoch => self.target_states.invalidate_all(),
            }
        }
    }

    /// Returns the callback by which the store reports its changes.
    pub(crate) fn create_observer(self: &Arc<Self>) -> ChangeObserver {
        let memory = self.clone();
        Arc::new(move |changes| memory.apply_changes(changes))
    }
}
