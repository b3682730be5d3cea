//! Work queue: each key at most once, with exponential backoff after failures.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Delay after the first failure; it doubles with each further one.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest delay after a failure.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Returns the delay after a number of failures in a row.
pub fn backoff(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    BACKOFF_FIRST.saturating_mul(doubled).min(BACKOFF_MAX)
}

/// Keys, each with the time at which it is due.
#[derive(Clone, Debug, Default)]
pub struct WorkQueue<K> {
    due: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self { due: BTreeMap::new(), failures: BTreeMap::new() }
    }

    /// Adds a key. The earliest time counts, except after a failure: then the backoff stays, because the change may be
    /// the reconciler's own write before it failed.
    pub fn add(&mut self, key: K, at: Instant) {
        let has_failed = self.failures.contains_key(&key);
        let due = self.due.entry(key).or_insert(at);
        if !has_failed {
            *due = (*due).min(at);
        }
    }

    /// Returns the time at which the next key is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Removes and returns a key that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<K> {
        let (key, _) = self.due.iter().filter(|(_, due)| **due <= now).min_by_key(|(_, due)| **due)?;
        let key = key.clone();
        self.due.remove(&key);
        Some(key)
    }

    /// Records a failure, and adds the key again after the returned delay.
    pub fn record_failure(&mut self, key: K, now: Instant) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let delay = backoff(*failures);
        self.due.insert(key, now + delay);
        delay
    }

    /// Adds a key again after a failure, at a given time instead of after the backoff.
    pub fn postpone(&mut self, key: K, until: Instant) {
        self.failures.entry(key.clone()).or_default();
        self.due.insert(key, until);
    }

    /// Ends the backoff of a key, after a success or an error that a retry does not fix.
    pub fn reset_failures(&mut self, key: &K) {
        self.failures.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_queued_once_and_the_earliest_time_counts() {
        let now = Instant::now();
        let mut queue = WorkQueue::new();
        queue.add("a", now + BACKOFF_MAX);
        queue.add("a", now);
        queue.add("b", now + BACKOFF_FIRST);
        assert_eq!((queue.take_due(now), queue.take_due(now)), (Some("a"), None));
        assert_eq!(queue.next_due(), Some(now + BACKOFF_FIRST));
    }

    #[test]
    fn the_delay_doubles_with_each_failure_up_to_the_maximum() {
        let now = Instant::now();
        let mut queue = WorkQueue::new();
        let waits: Vec<u64> = (0..8).map(|_| queue.record_failure("a", now).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        queue.add("a", now);
        assert_eq!(queue.take_due(now), None, "a change does not shorten the delay");
        queue.reset_failures(&"a");
        assert_eq!(queue.record_failure("a", now), BACKOFF_FIRST);
    }

    #[test]
    fn a_change_does_not_shorten_the_delay_of_a_postponed_key() {
        let now = Instant::now();
        let mut queue = WorkQueue::new();
        queue.postpone("a", now + BACKOFF_FIRST);
        queue.add("a", now);
        assert_eq!(queue.next_due(), Some(now + BACKOFF_FIRST));
    }
}
