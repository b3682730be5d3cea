//! Throttling of wrong keys by source. Valid keys from the same source are not throttled.
//!
//! A source may send ten wrong keys per minute. After that its requests are rejected with a time to wait, and a key is looked up
//! at most ten times per second, so that guessing costs the store almost nothing. Wrong keys with the prefix of a known key, which
//! is not secret, count only for this prefix, because agents may share an address with other clients. Known keys are those that the
//! store has at the start, those that this broker has issued, and those that were valid since; a broker that shares its store
//! reads them again while a source is throttled.
//! The time is passed in, and memory is limited: the oldest window is dropped first.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Limit on wrong keys of a source in one window.
const FAILURES_MAX: u32 = 10;
/// Time for which failures count, from the first one.
const WINDOW: Duration = Duration::from_secs(60);
/// Minimum time between two lookups of unknown keys for a throttled source.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(100);
/// Minimum time between two readings of the known keys.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);
/// Limit on the windows in memory.
const WINDOWS_MAX: usize = 10_000;
/// Limit on the valid keys in memory.
pub(crate) const KEYS_MAX: usize = 65_536;

/// Source of requests: an IPv4 address, or the /64 network of an IPv6 address, which one customer usually has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThrottleSource(u128);

impl ThrottleSource {
    pub(crate) fn from_address(address: IpAddr) -> Self {
        match address {
            // No IPv6 network equals a mapped IPv4 address, because its lower half is zero.
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Self(address.to_bits() >> 64 << 64),
        }
    }
}

/// Source, and the prefix of the known key that its wrong keys have.
type WindowKey = (ThrottleSource, Option<Box<str>>);

#[derive(Clone, Copy, Debug)]
struct Window {
    start: Instant,
    failures: u32,
    last_lookup: Option<Instant>,
}

#[derive(Default)]
struct State {
    windows: BTreeMap<WindowKey, Window>,
    /// The same keys, by the start of their window.
    by_age: BTreeSet<(Instant, WindowKey)>,
    /// Short tokens, which are not secret, of keys that were valid.
    valid_keys: HashSet<Box<str>>,
    valid_keys_by_age: VecDeque<Box<str>>,
    /// Last time at which the known keys were read again.
    reloaded_at: Option<Instant>,
}

/// Failures by source, and keys that are exempt.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<State>);

impl Throttle {
    /// Returns the time to wait if a key must not be looked up.
    pub(crate) fn check(&self, source: ThrottleSource, short: &str, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let key = state.window_key(source, Some(short));
        state.check(&key, now)
    }

    /// Returns the time to wait if a credential without a prefix, such as a token, must not be looked up.
    pub(crate) fn check_unknown(&self, source: ThrottleSource, now: Instant) -> Option<Duration> {
        self.lock().check(&(source, None), now)
    }

    /// Returns true if the known keys may be read again, and records it.
    pub(crate) fn begin_reload(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let is_due = state.reloaded_at.is_none_or(|last| now.duration_since(last) >= RELOAD_INTERVAL);
        if is_due {
            state.reloaded_at = Some(now);
        }
        is_due
    }

    /// Counts a wrong key with this prefix; returns the time to wait if there were too many.
    pub(crate) fn record_failure(&self, source: ThrottleSource, short: Option<&str>, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let key = state.window_key(source, short);
        let mut window = match state.windows.get(&key) {
            Some(window) if now.duration_since(window.start) < WINDOW => *window,
            Some(_) | None => Window { start: now, failures: 0, last_lookup: None },
        };
        let wait = window.time_to_wait(now);
        window.failures = window.failures.saturating_add(1);
        state.insert(key, window);
        wait
    }

    /// Records that a key was valid.
    pub(crate) fn record_success(&self, short: &str) {
        let mut state = self.lock();
        if state.valid_keys.contains(short) {
            return;
        }
        if state.valid_keys.len() >= KEYS_MAX
            && let Some(oldest) = state.valid_keys_by_age.pop_front()
        {
            state.valid_keys.remove(&oldest);
        }
        state.valid_keys.insert(short.into());
        state.valid_keys_by_age.push_back(short.into());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn time_to_wait(&self, now: Instant) -> Option<Duration> {
        let remaining = WINDOW.saturating_sub(now.duration_since(self.start));
        (self.failures >= FAILURES_MAX && !remaining.is_zero()).then_some(remaining)
    }
}

impl State {
    /// Returns the window of a key: that of its prefix if the prefix is known, otherwise that of its source.
    fn window_key(&self, source: ThrottleSource, short: Option<&str>) -> WindowKey {
        (source, short.and_then(|short| self.valid_keys.get(short).cloned()))
    }

    fn check(&mut self, key: &WindowKey, now: Instant) -> Option<Duration> {
        let window = self.windows.get_mut(key)?;
        let wait = window.time_to_wait(now)?;
        if window.last_lookup.is_none_or(|last| now.duration_since(last) >= LOOKUP_INTERVAL) {
            window.last_lookup = Some(now);
            return None;
        }
        Some(wait)
    }

    fn insert(&mut self, key: WindowKey, window: Window) {
        if let Some(previous) = self.windows.insert(key.clone(), window) {
            self.by_age.remove(&(previous.start, key.clone()));
        }
        self.by_age.insert((window.start, key));
        if self.windows.len() > WINDOWS_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.windows.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn source(number: u32) -> ThrottleSource {
        ThrottleSource::from_address(Ipv4Addr::from_bits(number).into())
    }

    /// Returns a throttle whose source 1 has reached the limit.
    fn throttle_at_limit(now: Instant) -> Throttle {
        let throttle = Throttle::default();
        for _ in 0..FAILURES_MAX {
            assert_eq!(throttle.record_failure(source(1), None, now), None);
        }
        assert_eq!(throttle.record_failure(source(1), None, now), Some(WINDOW));
        throttle
    }

    #[test]
    fn after_ten_wrong_keys_a_source_must_wait_until_the_window_ends() {
        let start = Instant::now();
        let throttle = throttle_at_limit(start);
        assert_eq!(throttle.record_failure(source(2), None, start), None, "another source");
        let later = start + WINDOW - Duration::from_secs(1);
        assert_eq!(throttle.record_failure(source(1), None, later), Some(Duration::from_secs(1)));
        assert_eq!(throttle.record_failure(source(1), None, start + WINDOW), None, "a new window");
    }

    #[test]
    fn a_valid_key_is_always_looked_up_and_an_unknown_one_ten_times_per_second() {
        let start = Instant::now();
        let throttle = Throttle::default();
        throttle.record_success("agent");
        assert_eq!(throttle.check(source(1), "unknown", start), None, "before there were failures");
        let throttle = {
            for _ in 0..FAILURES_MAX {
                throttle.record_failure(source(1), None, start);
            }
            throttle
        };
        let is_looked_up = |short: &str, time: Instant| throttle.check(source(1), short, time).is_none();
        let guesses: u32 =
            (0..1_000).map(|ms| u32::from(is_looked_up("guess", start + Duration::from_millis(ms)))).sum();
        assert_eq!(guesses, 10, "ten lookups in a second");
        assert!((0..1_000).all(|ms| is_looked_up("agent", start + Duration::from_millis(ms))));
        assert!(is_looked_up("guess", start + WINDOW));
    }

    #[test]
    fn guesses_with_a_known_prefix_are_throttled_and_affect_no_other_key() {
        let (start, throttle) = (Instant::now(), Throttle::default());
        throttle.record_success("agent");
        for _ in 0..FAILURES_MAX {
            assert_eq!(throttle.record_failure(source(1), Some("agent"), start), None);
        }
        assert_eq!(throttle.check(source(1), "agent", start), None, "the first lookup of ten per second");
        assert_eq!(throttle.check(source(1), "agent", start), Some(WINDOW));
        assert_eq!(throttle.check(source(2), "agent", start), None, "another source");
        assert_eq!(throttle.check(source(1), "unknown", start), None, "another prefix");
        for prefix in 0..FAILURES_MAX {
            throttle.record_failure(source(1), Some(&prefix.to_string()), start);
        }
        assert_eq!(throttle.check(source(1), "10", start), None, "the first lookup of ten per second");
        assert_eq!(throttle.check(source(1), "11", start), Some(WINDOW), "unknown prefixes count together");
    }

    #[test]
    fn known_keys_are_read_again_once_per_second() {
        let (start, throttle) = (Instant::now(), Throttle::default());
        assert!(throttle.begin_reload(start));
        assert!(!throttle.begin_reload(start + RELOAD_INTERVAL - Duration::from_millis(1)));
        assert!(throttle.begin_reload(start + RELOAD_INTERVAL));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_source() {
        let address = |text: &str| ThrottleSource::from_address(text.parse::<Ipv6Addr>().unwrap().into());
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_ne!(source(1), source(2));
    }

    #[test]
    fn memory_is_limited_and_the_oldest_source_is_dropped_first() {
        let start = Instant::now();
        let throttle = throttle_at_limit(start);
        for number in 0..WINDOWS_MAX as u32 {
            throttle.record_failure(source(1_000 + number), None, start + Duration::from_secs(1));
        }
        let sizes = |state: &State| [state.windows.len(), state.by_age.len()];
        assert_eq!(sizes(&throttle.lock()), [WINDOWS_MAX, WINDOWS_MAX]);
        assert_eq!(throttle.record_failure(source(1), None, start + Duration::from_secs(1)), None, "dropped");
        for number in 0..=KEYS_MAX {
            throttle.record_success(&number.to_string());
        }
        let sizes = |state: &State| [state.valid_keys.len(), state.valid_keys_by_age.len()];
        assert_eq!(sizes(&throttle.lock()), [KEYS_MAX, KEYS_MAX]);
        assert!(!throttle.lock().valid_keys.contains("0"));
    }
}
