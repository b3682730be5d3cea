//! Freshness of the caches on a store that other brokers write to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time without a response of the store after which the caches may lack too much: revoked keys and newer target states.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Time until which the caches have every change of other brokers.
#[derive(Debug, Default)]
pub(crate) struct Freshness(Mutex<Option<Instant>>);

impl Freshness {
    /// Records that the caches have every change that other brokers made before this time.
    pub(crate) fn confirm(&self, time: Instant) {
        *self.lock() = Some(time);
    }

    /// Returns true if the caches may lack changes for too long. Never on a store that only this broker writes to: there
    /// nothing is confirmed.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost_at(Instant::now())
    }

    fn is_lost_at(&self, now: Instant) -> bool {
        self.lock().is_some_and(|confirmed| now.saturating_duration_since(confirmed) >= SILENCE_MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        // Every change is one assignment, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_is_lost_after_a_silence_and_found_again() {
        let (freshness, now) = (Freshness::default(), Instant::now());
        assert!(!freshness.is_lost_at(now + SILENCE_MAX * 2), "only this broker writes");
        freshness.confirm(now);
        assert!(!freshness.is_lost_at(now + SILENCE_MAX - Duration::from_secs(1)));
        assert!(freshness.is_lost_at(now + SILENCE_MAX));
        freshness.confirm(now + SILENCE_MAX);
        assert!(!freshness.is_lost_at(now + SILENCE_MAX));
    }
}
