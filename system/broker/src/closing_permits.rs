//! Permits for what clients send or receive slowly, such as large bodies and lists: a client that holds one for long loses its
//! connection when another one needs it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::permits::{Permit, Permits};
use crate::store::KeyHolder;

/// Time that each client has, also if others wait.
const TIME_MIN: Duration = Duration::from_secs(15);

/// Permits of one resource.
pub(crate) struct ClosingPermits {
    permits: Permits,
    open: Arc<Mutex<OpenRequests>>,
}

#[derive(Debug, Default)]
struct OpenRequests {
    next: u64,
    /// Requests with a permit, oldest first, each with the end of its connection.
    by_number: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// Permit of one request, which ends when it is dropped.
pub(crate) struct ClosingPermit {
    permit: Permit,
    open: OpenRequest,
}

impl ClosingPermit {
    /// Splits it, for a client that has sent or received everything before the permit ends: the connection is closed for others
    /// only until [`OpenRequest`] is dropped.
    pub(crate) fn split(self) -> (Permit, OpenRequest) {
        (self.permit, self.open)
    }
}

/// A request whose connection may be closed for others.
pub(crate) struct OpenRequest {
    requests: Arc<Mutex<OpenRequests>>,
    number: u64,
}

impl ClosingPermits {
    pub(crate) fn new(all_max: u32, holder_max: u32) -> Self {
        Self { permits: Permits::new(all_max, holder_max), open: Arc::default() }
    }

    /// Waits for permits; `None` if there are none in time. `close` ends the connection of the request if another one needs them.
    pub(crate) async fn acquire(
        &self,
        holder: KeyHolder,
        count: u32,
        close: CancellationToken,
    ) -> Option<ClosingPermit> {
        let permit = self.permits.acquire_with(holder, count, || lock(&self.open).close_slowest()).await?;
        let mut open = lock(&self.open);
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, (Instant::now(), close));
        Some(ClosingPermit { permit, open: OpenRequest { requests: self.open.clone(), number } })
    }
}

impl OpenRequests {
    /// Closes the connection that has a permit for longest, if its client had its time.
    fn close_slowest(&mut self) {
        let is_slow = |since: &Instant, close: &CancellationToken| since.elapsed() >= TIME_MIN && !close.is_cancelled();
        if let Some((_, close)) = self.by_number.values().find(|(since, close)| is_slow(since, close)) {
            close.cancel();
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        lock(&self.requests).by_number.remove(&self.number);
    }
}

fn lock(open: &Mutex<OpenRequests>) -> MutexGuard<'_, OpenRequests> {
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
    async fn slow_clients_lose_their_permits_one_by_one_to_those_that_wait() {
        let permits = ClosingPermits::new(16, 4);
        let connections: Vec<CancellationToken> = std::iter::repeat_with(CancellationToken::new).take(16).collect();
        let mut held = Vec::new();
        for (number, connection) in connections.iter().enumerate() {
            held.push(permits.acquire(holder(number as u8), 1, connection.clone()).await);
        }
        let closed = || connections.iter().filter(|connection| connection.is_cancelled()).count();
        let slowest = async {
            connections[0].cancelled().await;
            held.remove(0);
        };
        let started = Instant::now();
        let (permit, ()) = tokio::join!(permits.acquire(holder(100), 1, CancellationToken::new()), slowest);
        assert!(permit.is_some());
        assert_eq!((closed(), started.elapsed()), (1, Duration::from_secs(16)), "after its time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_sent_everything_keeps_its_connection() {
        let (permits, connection) = (ClosingPermits::new(4, 4), CancellationToken::new());
        let (permit, open) = permits.acquire(holder(1), 4, connection.clone()).await.unwrap().split();
        drop(open);
        assert!(permits.acquire(holder(2), 1, CancellationToken::new()).await.is_none());
        assert!(!connection.is_cancelled());
        drop(permit);
        assert!(permits.acquire(holder(2), 1, CancellationToken::new()).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_waits_for_its_own_permits_closes_none() {
        let (permits, connection) = (ClosingPermits::new(16, 4), CancellationToken::new());
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(permits.acquire(holder(1), 1, connection.clone()).await);
        }
        assert!(permits.acquire(holder(1), 1, CancellationToken::new()).await.is_none());
        assert!(!connection.is_cancelled());
    }
}
