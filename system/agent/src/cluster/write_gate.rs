//! Gate before every request that changes the cluster: open only while this process holds the Lease.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// State of the Lease, set by leader election and read before each write. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct WriteGate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Debug, Default)]
struct State {
    leadership: Leadership,
    /// Reason why the API server refused the last attempt to read or write the Lease.
    refusal: Option<Arc<str>>,
    /// Number of times that this process has held the Lease again after it had lost it without noticing.
    term: u64,
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
        self.update(|state| {
            state.leadership = Leadership::Held { until };
            state.refusal = None;
        });
    }

    /// Records whether the API server refused to let this process read or write the Lease, and why.
    pub fn record_refusal(&self, reason: Option<Arc<str>>) {
        self.lock().refusal = reason;
    }

    /// Returns the reason why the API server refused the last attempt to read or write the Lease.
    pub fn refusal(&self) -> Option<Arc<str>> {
        self.lock().refusal.clone()
    }

    /// Begins a new term: this process has held the Lease, lost it without noticing, and holds it again.
    pub fn begin_term(&self) {
        self.update(|state| state.term += 1);
    }

    /// Closes the gate because another process holds the Lease.
    pub fn close_for_other_leader(&self) {
        self.update(|state| {
            state.leadership = Leadership::HeldByOther;
            state.refusal = None;
        });
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.0.changed.notify_waiters();
    }

    /// Returns the number of the term. Work of an earlier one must not go on.
    pub fn term(&self) -> u64 {
        self.lock().term
    }

    /// Returns true if another process is known to hold the Lease.
    pub fn has_other_leader(&self) -> bool {
        self.lock().leadership == Leadership::HeldByOther
    }

    /// Returns true if this process may write.
    pub fn is_open(&self) -> bool {
        matches!(self.lock().leadership, Leadership::Held { until } if Instant::now() < until)
    }

    /// Waits until this process may write.
    pub async fn wait_until_open(&self) {
        self.wait_until(Self::is_open).await;
    }

    /// Waits until this process may not write any more.
    pub async fn wait_until_closed(&self) {
        loop {
            let changed = self.0.changed.notified();
            let until = match self.lock().leadership {
                Leadership::Held { until } if Instant::now() < until => until,
                _ => return,
            };
            // The Lease may be renewed meanwhile.
            let _ = timeout_at(until, changed).await;
        }
    }

    /// Waits until another process is known to hold the Lease, or to have held it since the given term.
    pub async fn wait_for_end_of(&self, term: u64) {
        self.wait_until(|gate| gate.has_other_leader() || gate.term() != term).await;
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // No change can panic, so a poisoned lock still holds a valid state.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_gate_closes_when_the_lease_is_not_renewed_or_another_process_holds_it() {
        let gate = WriteGate::default();
        gate.wait_until_closed().await;
        gate.open_until(Instant::now() + SECOND);
        assert!(timeout(SECOND / 2, gate.wait_until_closed()).await.is_err(), "the Lease is held");
        gate.open_until(Instant::now() + SECOND);
        assert!(timeout(SECOND * 3 / 4, gate.wait_until_closed()).await.is_err(), "the Lease was renewed");
        assert!(timeout(SECOND, gate.wait_until_closed()).await.is_ok(), "the Lease was not renewed again");
        gate.open_until(Instant::now() + SECOND);
        gate.close_for_other_leader();
        assert!(timeout(SECOND / 2, gate.wait_until_closed()).await.is_ok(), "another process holds it");
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_when_the_lease_was_lost_without_being_noticed() {
        let gate = WriteGate::default();
        gate.open_until(Instant::now() + SECOND);
        let term = gate.term();
        gate.open_until(Instant::now() + SECOND);
        assert!(timeout(SECOND, gate.wait_for_end_of(term)).await.is_err(), "the Lease was only renewed");
        gate.begin_term();
        assert!(timeout(SECOND, gate.wait_for_end_of(term)).await.is_ok());
        assert!(timeout(SECOND, gate.wait_for_end_of(gate.term())).await.is_err(), "the work of the new term goes on");
        gate.close_for_other_leader();
        assert!(timeout(SECOND, gate.wait_for_end_of(gate.term())).await.is_ok());
    }
}
