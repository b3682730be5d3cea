//! History of the drift of a stack: drift that recurs is reported and corrected with growing pauses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sindri_model::ObjectKey;
use tokio::time::Instant;

/// Pause after a correction; doubled after each further one.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Number of corrections within the window, or of failures in a row, from which drift is reported.
const REPORTED_MIN: usize = 3;
/// Length of the window in polling intervals.
const WINDOW_POLLS: u32 = 10;
/// Number of corrections that are remembered.
const REMEMBERED_MAX: usize = 16;
/// Number of objects that are named in a message.
const NAMED_MAX: usize = 10;

/// Drift of one stack. It may be lost: a new process starts with none.
#[derive(Debug, Default)]
pub struct DriftHistory {
    corrections: VecDeque<Instant>,
    /// Passes in a row that could not correct what was once applied.
    failures: usize,
    /// Objects that drifted last.
    keys: Vec<Arc<ObjectKey>>,
    /// True if drift exists and is not to be corrected.
    is_uncorrected: bool,
}

/// Drift that is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistentDrift {
    /// It was detected and is not corrected, by policy.
    Detected(String),
    /// It recurs after each correction.
    Recurring {
        /// Objects that drifted last.
        keys: Vec<Arc<ObjectKey>>,
        /// Description of it.
        message: String,
    },
    /// It cannot be corrected.
    Uncorrectable(String),
}

impl DriftHistory {
    /// Records the drifted objects of a pass, which were corrected if `is_corrected`.
    pub fn record(&mut self, keys: &[Arc<ObjectKey>], is_corrected: bool) {
        self.failures = 0;
        self.is_uncorrected = !is_corrected && !keys.is_empty();
        if keys.is_empty() {
            return;
        }
        self.keys = keys.to_vec();
        if is_corrected {
            self.corrections.push_back(Instant::now());
            if self.corrections.len() > REMEMBERED_MAX {
                self.corrections.pop_front();
            }
        }
    }

    /// Records a pass that could not write what an earlier one had applied.
    pub fn record_failure(&mut self) {
        self.failures += 1;
    }

    /// Forgets everything, because another revision is applied.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the pause before the next correction.
    pub fn pause(&self, interval: Duration) -> Duration {
        let times = self.recent_corrections(interval).min(REMEMBERED_MAX);
        if times == 0 { Duration::ZERO } else { (PAUSE_FIRST * (1 << (times - 1))).min(interval) }
    }

    /// Returns the drift to report, if it is more than a single correction.
    pub fn persistent(&self, interval: Duration) -> Option<PersistentDrift> {
        let times = self.recent_corrections(interval);
        if self.failures >= REPORTED_MIN {
            let message = format!("{} passes in a row could not correct it", self.failures);
            return Some(PersistentDrift::Uncorrectable(message));
        }
        if self.is_uncorrected {
            return Some(PersistentDrift::Detected(format!("changed by another client: {}", self.list_keys())));
        }
        let message = || format!("corrected {times} times in {} s: {}", window(interval).as_secs(), self.list_keys());
        (times >= REPORTED_MIN).then(|| PersistentDrift::Recurring { keys: self.keys.clone(), message: message() })
    }

    fn recent_corrections(&self, interval: Duration) -> usize {
        self.corrections.iter().filter(|time| time.elapsed() < window(interval)).count()
    }

    fn list_keys(&self) -> String {
        let named: Vec<String> = self.keys.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        match self.keys.len().saturating_sub(NAMED_MAX) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }
}

fn window(interval: Duration) -> Duration {
    interval * WINDOW_POLLS
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    fn keys() -> Vec<Arc<ObjectKey>> {
        let namespace = Some("shop".to_owned());
        vec![Arc::new(ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace, name: "a".into() })]
    }

    #[test]
    fn recurring_drift_is_reported_and_corrected_ever_more_slowly() {
        let mut drift = DriftHistory::default();
        assert_eq!(drift.pause(INTERVAL), Duration::ZERO);
        drift.record(&keys(), true);
        assert_eq!((drift.pause(INTERVAL).as_secs(), drift.persistent(INTERVAL)), (1, None));
        drift.record(&[], true);
        drift.record(&keys(), true);
        drift.record(&keys(), true);
        let message = "corrected 3 times in 300 s: ConfigMap shop/a".into();
        let recurring = PersistentDrift::Recurring { keys: keys(), message };
        assert_eq!((drift.pause(INTERVAL).as_secs(), drift.persistent(INTERVAL)), (4, Some(recurring)));
        (0..20).for_each(|_| drift.record(&keys(), true));
        assert_eq!(drift.pause(INTERVAL), INTERVAL, "never longer than the polling interval");
    }

    #[test]
    fn three_failed_corrections_in_a_row_are_reported() {
        let mut drift = DriftHistory::default();
        drift.record_failure();
        drift.record_failure();
        assert_eq!(drift.persistent(INTERVAL), None);
        drift.record_failure();
        assert!(matches!(drift.persistent(INTERVAL), Some(PersistentDrift::Uncorrectable(_))));
        drift.record(&[], true);
        assert_eq!(drift.persistent(INTERVAL), None, "the next pass corrected it");
    }

    #[test]
    fn drift_that_is_not_corrected_is_reported_while_it_exists() {
        let mut drift = DriftHistory::default();
        drift.record(&keys(), false);
        assert!(matches!(drift.persistent(INTERVAL), Some(PersistentDrift::Detected(_))));
        drift.record(&[], false);
        assert_eq!(drift.persistent(INTERVAL), None);
    }
}
