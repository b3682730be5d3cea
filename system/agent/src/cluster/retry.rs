//! The one retry policy of every call to the Kubernetes API, as the guide states it.
//!
//! 1 s, 2 s, 4 s … at most 60 s apart, given up 5 minutes after the first attempt. `Retry-After` lengthens
//! a wait and never shortens it. Only what looks how objects are doing ends sooner: the next pass looks again.

use std::time::Duration;

/// When a transient failure is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The wait after the first failure; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// After this long no further attempt is made.
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
    /// How long to wait after the failure number `failures` (from 1), `elapsed` after the first attempt
    /// began; `None` to give up.
    pub fn wait(&self, failures: u32, elapsed: Duration, retry_after: Option<Duration>) -> Option<Duration> {
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
        while let Some(wait) = policy.wait(waits.len() as u32 + 1, elapsed, retry_after) {
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
        let endless = RetryPolicy::default().wait(1, Duration::from_secs(9), Some(Duration::MAX));
        assert_eq!(endless, None, "whatever a server asks for");
    }
}
