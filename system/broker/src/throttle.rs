//! Throttling of wrong keys by source. Valid keys from the same source are not throttled.
//!
//! A source may send ten wrong keys per minute. After that its requests are rejected with a time to wait, and a key that
//! is not known is looked up at most ten times per second, so that guessing costs the store almost nothing. A known key is
//! always looked up, because agents may share an address with other clients: the keys that the store has at the start,
//! those that this broker has issued, and those that were valid since.
//! The time is passed in, and memory is limited: the oldest source is dropped first.

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
/// Limit on the sources in memory.
const SOURCES_MAX: usize = 10_000;
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

#[derive(Clone, Copy, Debug)]
struct Window {
    start: Instant,
    failures: u32,
    last_lookup: Option<Instant>,
}

#[derive(Default)]
struct State {
    windows: BTreeMap<ThrottleSource, Window>,
    /// The same sources, by the start of their window.
    by_age: BTreeSet<(Instant, ThrottleSource)>,
    /// Short tokens, which are not secret, of keys that were valid.
    valid_keys: HashSet<Box<str>>,
    valid_keys_by_age: VecDeque<Box<str>>,
}

/// Failures by source, and keys that are exempt.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<State>);

impl Throttle {
    /// Returns the time to wait if a key must not be looked up.
    pub(crate) fn check(&self, source: ThrottleSource, short: &str, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let is_valid = state.valid_keys.contains(short);
        if is_valid { None } else { state.check_unknown(source, now) }
    }

    /// Returns the time to wait if a credential that is never exempt, such as a token, must not be looked up.
    pub(crate) fn check_unknown(&self, source: ThrottleSource, now: Instant) -> Option<Duration> {
        self.lock().check_unknown(source, now)
    }

    /// Counts a wrong key; returns the time to wait if its source has exceeded the limit.
    pub(crate) fn record_failure(&self, source: ThrottleSource, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let mut window = match state.windows.get(&source) {
            Some(window) if now.duration_since(window.start) < WINDOW => *window,
            Some(_) | None => Window { start: now, failures: 0, last_lookup: None },
        };
        let wait = window.time_to_wait(now);
        window.failures = window.failures.saturating_add(1);
        state.insert(source, window);
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
    fn check_unknown(&mut self, source: ThrottleSource, now: Instant) -> Option<Duration> {
        let window = self.windows.get_mut(&source)?;
        let wait = window.time_to_wait(now)?;
        if window.last_lookup.is_none_or(|last| now.duration_since(last) >= LOOKUP_INTERVAL) {
            window.last_lookup = Some(now);
            return None;
        }
        Some(wait)
    }

    fn insert(&mut self, source: ThrottleSource, window: Window) {
        if let Some(previous) = self.windows.insert(source, window) {
            self.by_age.remove(&(previous.start, source));
        }
        self.by_age.insert((window.start, source));
        if self.windows.len() > SOURCES_MAX
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
            assert_eq!(throttle.record_failure(source(1), now), None);
        }
        assert_eq!(throttle.record_failure(source(1), now), Some(WINDOW));
        throttle
    }

    #[test]
    fn after_ten_wrong_keys_a_source_must_wait_until_the_window_ends() {
        let start = Instant::now();
        let throttle = throttle_at_limit(start);
        assert_eq!(throttle.record_failure(source(2), start), None, "another source");
        let later = start + WINDOW - Duration::from_secs(1);
        assert_eq!(throttle.record_failure(source(1), later), Some(Duration::from_secs(1)));
        assert_eq!(throttle.record_failure(source(1), start + WINDOW), None, "a new window");
    }

    #[test]
    fn a_valid_key_is_always_looked_up_and_an_unknown_one_ten_times_per_second() {
        let start = Instant::now();
        let throttle = Throttle::default();
        throttle.record_success("agent");
        assert_eq!(throttle.check(source(1), "unknown", start), None, "before there were failures");
        let throttle = {
            for _ in 0..FAILURES_MAX {
                throttle.record_failure(source(1), start);
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
        for number in 0..SOURCES_MAX as u32 {
            throttle.record_failure(source(1_000 + number), start + Duration::from_secs(1));
        }
        let sizes = |state: &State| [state.windows.len(), state.by_age.len()];
        assert_eq!(sizes(&throttle.lock()), [SOURCES_MAX, SOURCES_MAX]);
        assert_eq!(throttle.record_failure(source(1), start + Duration::from_secs(1)), None, "dropped");
        for number in 0..=KEYS_MAX {
            throttle.record_success(&number.to_string());
        }
        let sizes = |state: &State| [state.valid_keys.len(), state.valid_keys_by_age.len()];
        assert_eq!(sizes(&throttle.lock()), [KEYS_MAX, KEYS_MAX]);
        assert!(!throttle.lock().valid_keys.contains("0"));
    }
}
