//! Permits of a limited resource: all holders of keys together have a limit, and each of them has a lower one, so that one
//! client cannot use everything.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::store::KeyHolder;

/// Number of holders in memory from which those without a permit are forgotten.
const HOLDERS_MAX: usize = 1_000;
/// Longest wait for permits.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Time between two reports of a wait for the permits that all holders share.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// Permits of one resource.
pub(crate) struct Permits {
    all: Arc<Semaphore>,
    holder_max: u32,
    by_holder: Mutex<BTreeMap<KeyHolder, Arc<Semaphore>>>,
}

/// Permits of one request, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _holder: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Permits {
    pub(crate) fn new(all_max: u32, holder_max: u32) -> Self {
        let all = usize::try_from(all_max).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(all)), holder_max, by_holder: Mutex::default() }
    }

    /// Waits for permits, at most for all of one holder; `None` if there are none in time.
    pub(crate) async fn acquire(&self, holder: KeyHolder, count: u32) -> Option<Permit> {
        self.acquire_with(holder, count, || {}).await
    }

    /// The same; `report` is called again and again while only the limit on all holders is in the way.
    pub(crate) async fn acquire_with(&self, holder: KeyHolder, count: u32, report: impl Fn()) -> Option<Permit> {
        let (own, count) = (self.permits_of(holder), count.min(self.holder_max));
        let both = async {
            // The own permits first, so that requests that wait for them hold none of all.
            let holder = own.acquire_many_owned(count).await.ok()?;
            let mut all = pin!(self.all.clone().acquire_many_owned(count));
            loop {
                match timeout(REPORT_EVERY, &mut all).await {
                    Ok(all) => return Some(Permit { _holder: holder, _all: all.ok()? }),
                    Err(_) => report(),
                }
            }
        };
        timeout(WAIT_MAX, both).await.ok().flatten()
    }

    fn permits_of(&self, holder: KeyHolder) -> Arc<Semaphore> {
        // No operation leaves the map half changed, so a poisoned lock is safe to use.
        let mut holders = self.by_holder.lock().unwrap_or_else(PoisonError::into_inner);
        let holder_max = usize::try_from(self.holder_max).unwrap_or(usize::MAX);
        if holders.len() >= HOLDERS_MAX {
            holders.retain(|_, permits| Arc::strong_count(permits) > 1 || permits.available_permits() < holder_max);
        }
        holders.entry(holder).or_insert_with(|| Arc::new(Semaphore::new(holder_max))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use sindri_model::{AgentId, Entropy};

    fn holder(byte: u8) -> KeyHolder {
        KeyHolder::Agent(AgentId::generate(&Entropy::new(move |bytes| bytes.fill(byte))))
    }

    #[tokio::test]
    async fn a_holder_has_some_of_the_permits_and_gets_one_back_when_a_request_ends() {
        let permits = Permits::new(16, 4);
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(permits.acquire(holder(1), 1).await.unwrap());
        }
        assert!(permits.acquire(holder(1), 1).now_or_never().is_none(), "it waits");
        assert!(permits.acquire(holder(2), 1).await.is_some(), "another holder");
        held.pop();
        assert!(permits.acquire(holder(1), 1).await.is_some());
    }

    #[tokio::test]
    async fn a_request_for_more_than_a_holder_has_gets_all_of_them() {
        let permits = Permits::new(16, 4);
        let held = permits.acquire(holder(1), 1_000).await.unwrap();
        assert!(permits.acquire(holder(1), 1).now_or_never().is_none());
        drop(held);
        assert!(permits.acquire(holder(1), 1).await.is_some());
    }

    #[tokio::test]
    async fn all_holders_together_have_a_limit() {
        let permits = Permits::new(16, 4);
        let mut held = Vec::new();
        for number in 0..16 {
            held.push(permits.acquire(holder(number), 1).await.unwrap());
        }
        assert!(permits.acquire(holder(200), 1).now_or_never().is_none(), "it waits");
        held.clear();
        assert!(permits.acquire(holder(200), 1).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_and_only_one_for_the_shared_limit_is_reported() {
        let (permits, reports) = (Permits::new(4, 4), std::cell::Cell::new(0));
        let _held = permits.acquire(holder(1), 4).await.unwrap();
        let report = || reports.set(reports.get() + 1);
        assert!(permits.acquire_with(holder(1), 1, report).await.is_none());
        assert_eq!(reports.get(), 0, "its own permits are in the way");
        assert!(permits.acquire_with(holder(2), 1, report).await.is_none());
        assert!((9..=10).contains(&reports.get()), "{}", reports.get());
    }
}
