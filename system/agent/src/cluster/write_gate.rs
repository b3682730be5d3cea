//! Gate before every request that changes the cluster: open only while this process holds the Lease.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// State of the Lease, set by leader election and read before each write. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct WriteGate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    leadership: Mutex<Leadership>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leadership {
    /// The Lease has not been read yet.
    #[default]
    Unknown,
    /// This process holds the Lease; no other process acts before `until`.
    Held { until: Instant },
    /// Another process holds the Lease.
    HeldByOther,
}

impl WriteGate {
    /// Opens the gate until the given time.
    pub fn open_until(&self, until: Instant) {
        self.set(Leadership::Held { until });
    }

    /// Closes the gate because another process holds the Lease.
    pub fn close_for_other_leader(&self) {
        self.set(Leadership::HeldByOther);
    }

    fn set(&self, leadership: Leadership) {
        *self.lock() = leadership;
        self.0.changed.notify_waiters();
    }

    /// Returns true if another process is known to hold the Lease.
    pub fn has_other_leader(&self) -> bool {
        *self.lock() == Leadership::HeldByOther
    }

    /// Returns true if this process may write.
    pub fn is_open(&self) -> bool {
        matches!(*self.lock(), Leadership::Held { until } if Instant::now() < until)
    }

    /// Waits until this process may write.
    pub async fn wait_until_open(&self) {
        self.wait_until(Self::is_open).await;
    }

    /// Waits until another process is known to hold the Lease.
    pub async fn wait_for_other_leader(&self) {
        self.wait_until(Self::has_other_leader).await;
    }

    /// Waits until no other process is known to hold the Lease.
    pub async fn wait_until_no_other_leader(&self) {
        self.wait_until(|gate| !gate.has_other_leader()).await;
    }

    async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if condition(self) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Leadership> {
        // The value is replaced as a whole, so a poisoned lock still holds a valid one.
        self.0.leadership.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
