//! One machine shared by several tasks: a lock, and a notification after each change.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::server::ApiServer;

/// A machine that connections, watches and the tick loop share. Clones are the same machine.
#[derive(Clone)]
pub struct SharedServer(Arc<Inner>);

struct Inner {
    machine: Mutex<ApiServer>,
    // A plain `Notify` and not a watch channel, which would wake its receivers in a random order.
    changed: Notify,
}

impl SharedServer {
    /// Shares a machine.
    #[must_use]
    pub fn new(machine: ApiServer) -> Self {
        Self(Arc::new(Inner { machine: Mutex::new(machine), changed: Notify::new() }))
    }

    /// Calls a function with the machine. Watches and the tick loop wake up when something changed.
    pub fn with<R>(&self, using: impl FnOnce(&mut ApiServer) -> R) -> R {
        // A panic while the lock was held is a failed assertion, which has already failed its run.
        let mut machine = self.0.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let before = machine.pulse();
        let result = using(&mut machine);
        let changed = machine.pulse() != before;
        drop(machine);
        if changed {
            self.0.changed.notify_waiters();
        }
        result
    }

    /// Wakes the tasks that wait for a change or a time, because the time itself has changed.
    pub(crate) fn wake(&self) {
        self.0.changed.notify_waiters();
    }

    /// Resolves at the next change after the future was enabled or first polled.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.changed.notified()
    }
}
