//! The retry policy of every request to the Kubernetes API.
//!
//! Waits of 1 s, 2 s, 4 s … at most 60 s; no attempt later than 5 minutes after the first. `Retry-After` lengthens
//! a wait and never shortens it. Health checks carry an earlier deadline of their own, because the next pass repeats them.

use std::time::Duration;

/// Backoff of transient failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Wait after the first failure; doubled after each further one.
    pub first_wait: Duration,
    /// Longest wait, unless the server asks for more.
    pub longest_wait: Duration,
    /// Time after the first attempt from which no further attempt is made.
    pub give_up_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            give_up_after: Duration::from_secs(5 * 60),
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after failure number `failures` (from 1), `elapsed` after the first attempt began; `None` to
    /// give up.
    pub fn wait_after(&self, failures: u32, elapsed: Duration, retry_after: Option<Duration>) -> Option<Duration> {
        let doubled = self.first_wait.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let wait = doubled.min(self.longest_wait).max(retry_after.unwrap_or_default());
        (elapsed.saturating_add(wait) < self.give_up_after).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(retry_after: Option<Duration>) -> Vec<u64> {
        let (policy, mut elapsed, mut waits) = (RetryPolicy::default(), Duration::ZERO, Vec::new());
        while let Some(wait) = policy.wait_after(waits.len() as u32 + 1, elapsed, retry_after) {
            waits.push(wait.as_secs());
            elapsed += wait;
        }
        waits
    }

    #[test]
    fn waits_double_up_to_a_minute_and_end_after_five() {
        assert_eq!(schedule(None), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn retry_after_lengthens_a_wait_and_never_shortens_it() {
        assert_eq!(schedule(Some(Duration::from_secs(5)))[..4], [5, 5, 5, 8]);
        assert_eq!(schedule(Some(Duration::from_secs(400))), [0; 0]);
        let endless = RetryPolicy::default().wait_after(1, Duration::from_secs(9), Some(Duration::MAX));
        assert_eq!(endless, None, "a Retry-After of any length is accepted without overflow");
    }
}
