//! Whether this process may write: a gate before every call that changes something.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// What is known of the Lease. Shared by whoever renews it and whoever writes.
#[derive(Clone, Debug, Default)]
pub struct Holding(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The cluster has not said, or not for too long.
    #[default]
    Unknown,
    /// Nobody else acts before this time.
    Held { until: Instant },
    /// Another process acts.
    Taken,
}

impl Holding {
    /// It is ours until then.
    pub fn hold(&self, until: Instant) {
        self.set(State::Held { until });
    }

    /// Somebody else has it.
    pub fn taken(&self) {
        self.set(State::Taken);
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.0.changed.notify_waiters();
    }

    /// Whether another process is known to act.
    pub fn is_taken(&self) -> bool {
        *self.lock() == State::Taken
    }

    /// Whether this process may write.
    pub fn is_held(&self) -> bool {
        matches!(*self.lock(), State::Held { until } if Instant::now() < until)
    }

    /// Ends as soon as this process may write.
    pub async fn held(&self) {
        self.until(Self::is_held).await;
    }

    /// Ends as soon as another process acts.
    pub async fn lost(&self) {
        self.until(Self::is_taken).await;
    }

    /// Ends as soon as no other process is known to act.
    pub async fn free(&self) {
        self.until(|holding| !holding.is_taken()).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here can be left half done.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
