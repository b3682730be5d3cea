//! Whose turn it is, and when: each key at most once, failures ever more slowly.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// The wait after the first failure; it doubles.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// How long to wait after so many failures in a row.
pub fn backoff(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    BACKOFF_FIRST.saturating_mul(doubled).min(BACKOFF_MAX)
}

/// Keys and when they are due.
#[derive(Clone, Debug, Default)]
pub struct Queue<K> {
    due: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> Queue<K> {
    /// A queue without keys.
    pub fn new() -> Self {
        Self { due: BTreeMap::new(), failures: BTreeMap::new() }
    }

    /// Adds a key; one that is due earlier stays so. One that waits after a failure goes on waiting: a change that
    /// it made itself before it failed is no reason to hurry.
    pub fn add(&mut self, key: K, at: Instant) {
        let has_failed = self.failures.contains_key(&key);
        let due = self.due.entry(key).or_insert(at);
        if !has_failed {
            *due = (*due).min(at);
        }
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes one that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<K> {
        let (key, _) = self.due.iter().filter(|(_, due)| **due <= now).min_by_key(|(_, due)| **due)?;
        let key = key.clone();
        self.due.remove(&key);
        Some(key)
    }

    /// It failed and comes again, after the delay that is returned.
    pub fn failed(&mut self, key: K, now: Instant) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let delay = backoff(*failures);
        self.due.insert(key, now + delay);
        delay
    }

    /// It succeeded, or there is no point in trying soon.
    pub fn settled(&mut self, key: &K) {
        self.failures.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_queued_once_and_the_earliest_time_counts() {
        let now = Instant::now();
        let mut queue = Queue::new();
        queue.add("a", now + BACKOFF_MAX);
        queue.add("a", now);
        queue.add("b", now + BACKOFF_FIRST);
        assert_eq!((queue.take_due(now), queue.take_due(now)), (Some("a"), None));
        assert_eq!(queue.next_due(), Some(now + BACKOFF_FIRST));
    }

    #[test]
    fn failures_in_a_row_wait_longer_and_no_longer_than_the_longest() {
        let now = Instant::now();
        let mut queue = Queue::new();
        let waits: Vec<u64> = (0..8).map(|_| queue.failed("a", now).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        queue.add("a", now);
        assert_eq!(queue.take_due(now), None, "a change does not shorten the wait");
        queue.settled(&"a");
        assert_eq!(queue.failed("a", now), BACKOFF_FIRST);
    }
}
