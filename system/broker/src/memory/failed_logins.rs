//! Failed logins that are not in the audit log yet.
//!
//! Their number is limited, so that a flood of wrong keys does not fill the store: one for each source and key prefix in a
//! minute, and a number of all in ten minutes. An entry has the number of those before it that were left out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::store::FailedLogin;
use crate::throttle::ThrottleSource;

/// Minimum time between two entries with the same source and key prefix.
const SAME_INTERVAL: Duration = Duration::from_secs(60);
/// Time for which [`ENTRIES_MAX`] holds.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// Limit on all entries in one window, and on those in memory.
const ENTRIES_MAX: usize = 100;

/// Source and key prefix.
type Origin = (Option<ThrottleSource>, Option<String>);

#[derive(Debug, Default)]
struct State {
    /// Time of the last entry of each origin in the current window.
    last: BTreeMap<Origin, Instant>,
    /// Start of the window, and the entries in it.
    window: Option<(Instant, usize)>,
    unrecorded: u64,
    pending: VecDeque<FailedLogin>,
}

/// Failed logins until they are written to the audit log.
#[derive(Debug, Default)]
pub(crate) struct FailedLogins {
    state: Mutex<State>,
    added: Notify,
}

impl FailedLogins {
    /// Adds a failed login, unless a limit is reached.
    pub(crate) fn insert(&self, login: FailedLogin, now: Instant) {
        if self.lock().insert(login, now) {
            self.added.notify_one();
        }
    }

    /// Completes when a failed login was added.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Returns the failed logins that are not written yet, oldest first.
    pub(crate) fn list_pending(&self) -> Vec<FailedLogin> {
        self.lock().pending.iter().cloned().collect()
    }

    /// Removes the oldest `count` failed logins, which were written.
    pub(crate) fn remove_written(&self, count: usize) {
        let pending = &mut self.lock().pending;
        pending.drain(..count.min(pending.len()));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&mut self, mut login: FailedLogin, now: Instant) -> bool {
        let (start, entries) = match self.window {
            Some((start, entries)) if now.duration_since(start) < WINDOW => (start, entries),
            Some(_) | None => {
                self.last.retain(|_, last| now.duration_since(*last) < SAME_INTERVAL);
                (now, 0)
            }
        };
        let origin = (login.peer.map(ThrottleSource::from_address), login.key_prefix.clone());
        let is_repeated = self.last.get(&origin).is_some_and(|last| now.duration_since(*last) < SAME_INTERVAL);
        if is_repeated || entries >= ENTRIES_MAX || self.pending.len() >= ENTRIES_MAX {
            self.unrecorded += 1;
            return false;
        }
        login.unrecorded = std::mem::take(&mut self.unrecorded);
        self.last.insert(origin, now);
        self.window = Some((start, entries + 1));
        self.pending.push_back(login);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LoginFailure;
    use jiff::Timestamp;

    fn login(peer: u32, prefix: &str) -> FailedLogin {
        FailedLogin {
            time: Timestamp::UNIX_EPOCH,
            peer: Some(std::net::Ipv4Addr::from_bits(peer).into()),
            key_prefix: Some(prefix.to_owned()),
            reason: LoginFailure::Unknown,
            unrecorded: 0,
        }
    }

    fn unrecorded(logins: &FailedLogins) -> Vec<u64> {
        logins.list_pending().iter().map(|login| login.unrecorded).collect()
    }

    #[test]
    fn one_entry_for_each_address_and_key_prefix_in_a_minute() {
        let (logins, start) = (FailedLogins::default(), Instant::now());
        for _ in 0..5 {
            logins.insert(login(1, "BRa"), start);
        }
        logins.insert(login(1, "BRb"), start);
        logins.insert(login(2, "BRa"), start);
        logins.insert(login(1, "BRa"), start + SAME_INTERVAL - Duration::from_secs(1));
        logins.insert(login(1, "BRa"), start + SAME_INTERVAL);
        assert_eq!(unrecorded(&logins), [0, 4, 0, 1]);
    }

    #[test]
    fn the_number_of_entries_is_limited_also_for_different_sources_and_keys() {
        let (logins, start) = (FailedLogins::default(), Instant::now());
        for number in 0..10 * ENTRIES_MAX as u32 {
            logins.insert(login(number, &number.to_string()), start);
            logins.remove_written(1);
        }
        assert!(logins.lock().last.len() <= ENTRIES_MAX);
        logins.insert(login(1, "BRa"), start + WINDOW - Duration::from_secs(1));
        assert!(logins.list_pending().is_empty(), "in the same window");
        logins.insert(login(1, "BRa"), start + WINDOW);
        assert_eq!(unrecorded(&logins), [9 * ENTRIES_MAX as u64 + 1]);
    }

    #[test]
    fn entries_stay_in_memory_until_they_are_written() {
        let (logins, start) = (FailedLogins::default(), Instant::now());
        logins.insert(login(1, "BRa"), start);
        logins.insert(login(1, "BRb"), start);
        assert_eq!(logins.list_pending().len(), 2);
        logins.remove_written(1);
        assert_eq!(logins.list_pending()[0].key_prefix.as_deref(), Some("BRb"));
        logins.remove_written(2);
        assert!(logins.list_pending().is_empty());
    }
}
