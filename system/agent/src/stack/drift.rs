//! How often a stack had to be put right: what comes back again and again is told and put right ever more slowly.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sindri_model::ObjectKey;
use tokio::time::Instant;

/// After something was put right: how long until the next time. Twice as long each further time.
const REST_FIRST: Duration = Duration::from_secs(1);
/// So many times within the window is again and again.
const OFTEN: usize = 3;
/// The window, in polls.
const WINDOW_POLLS: u32 = 10;
/// More are not remembered.
const REMEMBERED_MAX: usize = 16;
/// So many objects are named.
const NAMED_MAX: usize = 10;

/// What is remembered of a stack. All of it can be lost.
#[derive(Debug, Default)]
pub struct Drift {
    corrected: VecDeque<Instant>,
    /// Passes in a row that could not put right what was once applied.
    failed: usize,
    /// What was last found changed.
    keys: Vec<Arc<ObjectKey>>,
    /// It is not to be put right.
    is_left: bool,
}

/// What is to be told of a drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persistent {
    /// It was found, and is left as it is.
    Left(String),
    /// It comes back again and again.
    ComesBack(String),
    /// It cannot be put right.
    Stays(String),
}

impl Drift {
    /// A pass found these changed, and has put them right unless they are to be left.
    pub fn found(&mut self, keys: &[Arc<ObjectKey>], is_left: bool) {
        self.failed = 0;
        self.is_left = is_left && !keys.is_empty();
        if keys.is_empty() {
            return;
        }
        self.keys = keys.to_vec();
        if !is_left {
            self.corrected.push_back(Instant::now());
            if self.corrected.len() > REMEMBERED_MAX {
                self.corrected.pop_front();
            }
        }
    }

    /// A pass could not write what an earlier one had applied.
    pub fn failed(&mut self) {
        self.failed += 1;
    }

    /// Another revision is wanted: what was wrong with the last one does not count.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// How long to wait before something is put right again, if that has just been done.
    pub fn rest(&self, interval: Duration) -> Duration {
        let times = self.recent(interval).min(REMEMBERED_MAX);
        if times == 0 { Duration::ZERO } else { (REST_FIRST * (1 << (times - 1))).min(interval) }
    }

    /// What to tell, if it is more than what happens once.
    pub fn persistent(&self, interval: Duration) -> Option<Persistent> {
        let times = self.recent(interval);
        if self.failed >= OFTEN {
            return Some(Persistent::Stays(format!("{} passes in a row could not put it right", self.failed)));
        }
        if self.is_left {
            return Some(Persistent::Left(format!("changed by someone else: {}", self.named())));
        }
        let named = || format!("put right {times} times in {} s: {}", window(interval).as_secs(), self.named());
        (times >= OFTEN).then(|| Persistent::ComesBack(named()))
    }

    fn recent(&self, interval: Duration) -> usize {
        self.corrected.iter().filter(|time| time.elapsed() < window(interval)).count()
    }

    fn named(&self) -> String {
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
    fn once_is_nothing_and_again_and_again_is_told_and_slowed_down() {
        let mut drift = Drift::default();
        assert_eq!(drift.rest(INTERVAL), Duration::ZERO);
        drift.found(&keys(), false);
        assert_eq!((drift.rest(INTERVAL).as_secs(), drift.persistent(INTERVAL)), (1, None));
        drift.found(&[], false);
        drift.found(&keys(), false);
        drift.found(&keys(), false);
        let told = Persistent::ComesBack("put right 3 times in 300 s: ConfigMap shop/a".into());
        assert_eq!((drift.rest(INTERVAL).as_secs(), drift.persistent(INTERVAL)), (4, Some(told)));
        (0..20).for_each(|_| drift.found(&keys(), false));
        assert_eq!(drift.rest(INTERVAL), INTERVAL, "never slower than the polls");
    }

    #[test]
    fn one_failure_is_nothing_and_three_in_a_row_are_told() {
        let mut drift = Drift::default();
        drift.failed();
        drift.failed();
        assert_eq!(drift.persistent(INTERVAL), None);
        drift.failed();
        assert!(matches!(drift.persistent(INTERVAL), Some(Persistent::Stays(_))));
        drift.found(&[], false);
        assert_eq!(drift.persistent(INTERVAL), None, "it was put right after all");
    }

    #[test]
    fn what_is_only_looked_at_is_told_as_long_as_it_is_so() {
        let mut drift = Drift::default();
        drift.found(&keys(), true);
        assert!(matches!(drift.persistent(INTERVAL), Some(Persistent::Left(_))));
        drift.found(&[], true);
        assert_eq!(drift.persistent(INTERVAL), None);
    }
}
