//! Limit on the lists of large records that are in memory at the same time.
//!
//! A list holds its permit until the client has received it. A client that reads slowly loses its connection when another one
//! needs the permit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::permits::{Permit, Permits};
use crate::store::KeyHolder;

/// Limit on all lists.
const ALL_MAX: u32 = 16;
/// Limit on the lists of one holder.
const HOLDER_MAX: u32 = 4;
/// Time that each client has to receive a list, also if others wait.
const RECEIVE_TIME_MIN: Duration = Duration::from_secs(15);

/// Permits for lists.
pub(crate) struct ListPermits {
    permits: Permits,
    open: Arc<Mutex<OpenLists>>,
}

#[derive(Debug, Default)]
struct OpenLists {
    next: u64,
    /// Lists that are read or sent, oldest first, each with the end of its connection.
    by_number: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// Permit for one list, which ends when it is dropped.
pub(crate) struct ListPermit {
    _permit: Permit,
    open: Arc<Mutex<OpenLists>>,
    number: u64,
}

impl Default for ListPermits {
    fn default() -> Self {
        Self { permits: Permits::new(ALL_MAX, HOLDER_MAX), open: Arc::default() }
    }
}

impl ListPermits {
    /// Waits for a permit; `None` if there is none in time. `close` ends the connection of the list if another one needs the permit.
    pub(crate) async fn acquire(&self, holder: KeyHolder, close: CancellationToken) -> Option<ListPermit> {
        let permit = self.permits.acquire_with(holder, 1, || lock(&self.open).close_slowest()).await?;
        let mut open = lock(&self.open);
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, (Instant::now(), close));
        Some(ListPermit { _permit: permit, open: self.open.clone(), number })
    }
}

impl OpenLists {
    /// Closes the connection of the oldest list, if its client had time to receive it.
    fn close_slowest(&mut self) {
        let is_slow = |since: &Instant| since.elapsed() >= RECEIVE_TIME_MIN;
        if let Some((_, (_, close))) =
            self.by_number.iter().find(|(_, (since, close))| is_slow(since) && !close.is_cancelled())
        {
            close.cancel();
        }
    }
}

impl Drop for ListPermit {
    fn drop(&mut self) {
        lock(&self.open).by_number.remove(&self.number);
    }
}

fn lock(open: &Mutex<OpenLists>) -> MutexGuard<'_, OpenLists> {
    // No operation leaves the state half changed, so a poisoned lock is safe to use.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sindri_model::{AgentId, Entropy};

    fn holder(byte: u8) -> KeyHolder {
        KeyHolder::Agent(AgentId::generate(&Entropy::new(move |bytes| bytes.fill(byte))))
    }

    #[tokio::test(start_paused = true)]
    async fn slow_clients_lose_their_lists_one_by_one_to_those_that_wait() {
        let permits = ListPermits::default();
        let connections: Vec<CancellationToken> = std::iter::repeat_with(CancellationToken::new).take(16).collect();
        let mut held = Vec::new();
        for (number, connection) in connections.iter().enumerate() {
            held.push(permits.acquire(holder(number as u8), connection.clone()).await);
        }
        let closed = || connections.iter().filter(|connection| connection.is_cancelled()).count();
        let slowest = async {
            connections[0].cancelled().await;
            held.remove(0);
        };
        let started = Instant::now();
        let (permit, ()) = tokio::join!(permits.acquire(holder(100), CancellationToken::new()), slowest);
        assert!(permit.is_some());
        assert_eq!((closed(), started.elapsed()), (1, Duration::from_secs(16)), "after its time to receive the list");
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_waits_for_its_own_lists_closes_none() {
        let (permits, connection) = (ListPermits::default(), CancellationToken::new());
        let mut held = Vec::new();
        for _ in 0..HOLDER_MAX {
            held.push(permits.acquire(holder(1), connection.clone()).await);
        }
        assert!(permits.acquire(holder(1), CancellationToken::new()).await.is_none());
        assert!(!connection.is_cancelled());
    }
}
