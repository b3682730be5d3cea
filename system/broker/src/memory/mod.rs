//! What a broker remembers of its store, so that an idle poll asks it nothing.
//!
//! Everything here may be forgotten at any time, and is, as soon as the store says that it changed.

mod etag;
mod heartbeats;
mod keys;
mod target_states;

use std::sync::Arc;

pub(crate) use etag::{EtagKey, is_named};
pub(crate) use heartbeats::Heartbeats;
pub(crate) use keys::Keyring;
pub(crate) use target_states::{Answer, Answers};
use tokio::sync::Notify;

use crate::store::{ChangeObserver, StoreChange};

/// What a broker remembers.
#[derive(Default)]
pub(crate) struct Memory {
    pub answers: Answers,
    pub keys: Keyring,
    pub heartbeats: Heartbeats,
    /// There may be messages to send.
    pub deliveries: Notify,
}

impl Memory {
    /// Forgets what has changed, and wakes who waits for it.
    pub(crate) fn note(&self, changes: &[StoreChange]) {
        for change in changes {
            match change {
                StoreChange::TargetState(agent, _) => self.answers.forget(*agent),
                StoreChange::Keys => self.keys.forget(),
                StoreChange::Deliveries => self.deliveries.notify_one(),
                StoreChange::Epoch => self.answers.forget_all(),
            }
        }
    }

    pub(crate) fn watcher(self: &Arc<Self>) -> ChangeObserver {
        let memory = self.clone();
        Arc::new(move |changes| memory.note(changes))
    }
}
