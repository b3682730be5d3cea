//! Limit on the lists of large records that are in memory at the same time.
//!
//! A list holds its permit until the client has received it. The limit of each holder of a key keeps one client that reads
//! slowly from using all permits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::store::KeyHolder;

/// Limit on all lists.
const ALL_MAX: usize = 16;
/// Limit on the lists of one holder.
const HOLDER_MAX: usize = 4;
/// Number of holders in memory from which those without a list are forgotten.
const HOLDERS_MAX: usize = 1_000;
/// Longest wait for a permit.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Permits for lists.
pub(crate) struct ListPermits {
    all: Arc<Semaphore>,
    by_holder: Mutex<BTreeMap<KeyHolder, Arc<Semaphore>>>,
}

/// Permit for one list, which ends when it is dropped.
pub(crate) struct ListPermit {
    _holder: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Default for ListPermits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL_MAX)), by_holder: Mutex::default() }
    }
}

impl ListPermits {
    /// Waits for a permit; `None` if there is none in time.
    pub(crate) async fn acquire(&self, holder: KeyHolder) -> Option<ListPermit> {
        let own = self.permits_of(holder);
        let both = async {
            // The own permit first, so that lists that wait for it hold none of all.
            let holder = own.acquire_owned().await.ok()?;
            Some(ListPermit { _holder: holder, _all: self.all.clone().acquire_owned().await.ok()? })
        };
        timeout(WAIT_MAX, both).await.ok().flatten()
    }

    fn permits_of(&self, holder: KeyHolder) -> Arc<Semaphore> {
        // No operation leaves the map half changed, so a poisoned lock is safe to use.
        let mut holders = self.by_holder.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.len() >= HOLDERS_MAX {
            holders.retain(|_, permits| Arc::strong_count(permits) > 1 || permits.available_permits() < HOLDER_MAX);
        }
        holders.entry(holder).or_insert_with(|| Arc::new(Semaphore::new(HOLDER_MAX))).clone()
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
    async fn a_holder_has_some_of_the_permits_and_gets_one_back_when_a_list_ends() {
        let permits = ListPermits::default();
        let mut held = Vec::new();
        for _ in 0..HOLDER_MAX {
            held.push(permits.acquire(holder(1)).await.unwrap());
        }
        assert!(permits.acquire(holder(1)).now_or_never().is_none(), "it waits");
        assert!(permits.acquire(holder(2)).await.is_some(), "another holder");
        held.pop();
        assert!(permits.acquire(holder(1)).await.is_some());
    }

    #[tokio::test]
    async fn all_holders_together_have_a_limit() {
        let permits = ListPermits::default();
        let mut held = Vec::new();
        for number in 0..ALL_MAX {
            held.push(permits.acquire(holder(number as u8)).await.unwrap());
        }
        assert!(permits.acquire(holder(200)).now_or_never().is_none(), "it waits");
        held.clear();
        assert!(permits.acquire(holder(200)).await.is_some());
    }
}
