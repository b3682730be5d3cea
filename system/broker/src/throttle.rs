//! Wrong keys from one source are slowed down; right keys from the same source are not.
//!
//! Within a minute a source may be wrong ten times. After that it is told to wait, and a key that nobody has used
//! before is looked up only now and then, so that guessing costs the store next to nothing. A key that has been
//! right before is always looked up: agents share an address with whoever else is behind it.
//! The time is handed in, and memory is bounded: the oldest source is forgotten first.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often a source may be wrong in a window.
const FAILURES_MAX: u32 = 10;
/// How long failures count, from the first one.
const WINDOW: Duration = Duration::from_secs(60);
/// How often a throttled source may have an unknown key looked up.
const LOOKUP_EVERY: Duration = Duration::from_millis(100);
/// The most sources that are remembered.
const SOURCES_MAX: usize = 10_000;
/// The most keys that are remembered to have been right.
const KEYS_MAX: usize = 65_536;

/// Who is wrong: an address, or for IPv6 the network that one customer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source(u128);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            // No network of IPv6 begins like an address of IPv4 in this form.
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Self(address.to_bits() >> 64 << 64),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    failures: u32,
    looked_up: Option<Instant>,
}

#[derive(Default)]
struct State {
    windows: BTreeMap<Source, Window>,
    /// The same sources, the oldest window first.
    by_age: BTreeSet<(Instant, Source)>,
    /// Short tokens, which are no secrets, of keys that were right.
    right: HashSet<Box<str>>,
    right_by_age: VecDeque<Box<str>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<State>);

impl Throttle {
    /// Whether a key is not even looked up: how long its source must wait then.
    pub(crate) fn refuses(&self, source: Source, short: &str, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let is_known = state.right.contains(short);
        let window = state.windows.get_mut(&source)?;
        let wait = window.wait(now)?;
        if is_known {
            return None;
        }
        if window.looked_up.is_none_or(|last| now.duration_since(last) >= LOOKUP_EVERY) {
            window.looked_up = Some(now);
            return None;
        }
        Some(wait)
    }

    /// Notes a wrong key; says how long its source must wait, if it was wrong too often.
    pub(crate) fn failed(&self, source: Source, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let mut window = match state.windows.get(&source) {
            Some(window) if now.duration_since(window.began) < WINDOW => *window,
            Some(_) | None => Window { began: now, failures: 0, looked_up: None },
        };
        let wait = window.wait(now);
        window.failures = window.failures.saturating_add(1);
        state.keep(source, window);
        wait
    }

    /// Notes a key that was right.
    pub(crate) fn succeeded(&self, short: &str) {
        let mut state = self.lock();
        if state.right.contains(short) {
            return;
        }
        if state.right.len() >= KEYS_MAX
            && let Some(oldest) = state.right_by_age.pop_front()
        {
            state.right.remove(&oldest);
        }
        state.right.insert(short.into());
        state.right_by_age.push_back(short.into());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn wait(&self, now: Instant) -> Option<Duration> {
        let left = WINDOW.saturating_sub(now.duration_since(self.began));
        (self.failures >= FAILURES_MAX && !left.is_zero()).then_some(left)
    }
}

impl State {
    fn keep(&mut self, source: Source, window: Window) {
        if let Some(before) = self.windows.insert(source, window) {
            self.by_age.remove(&(before.began, source));
        }
        self.by_age.insert((window.began, source));
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

    fn source(number: u32) -> Source {
        Source::of(Ipv4Addr::from_bits(number).into())
    }

    /// A throttle that has just told a source to wait.
    fn exhausted(now: Instant) -> Throttle {
        let throttle = Throttle::default();
        for _ in 0..FAILURES_MAX {
            assert_eq!(throttle.failed(source(1), now), None);
        }
        assert_eq!(throttle.failed(source(1), now), Some(WINDOW));
        throttle
    }

    #[test]
    fn after_ten_wrong_keys_a_source_waits_until_the_window_has_passed() {
        let began = Instant::now();
        let throttle = exhausted(began);
        assert_eq!(throttle.failed(source(2), began), None, "another source");
        let later = began + WINDOW - Duration::from_secs(1);
        assert_eq!(throttle.failed(source(1), later), Some(Duration::from_secs(1)));
        assert_eq!(throttle.failed(source(1), began + WINDOW), None, "a new window");
    }

    #[test]
    fn a_key_that_was_right_is_always_looked_up_and_an_unknown_one_only_now_and_then() {
        let began = Instant::now();
        let throttle = Throttle::default();
        throttle.succeeded("agent");
        assert_eq!(throttle.refuses(source(1), "unknown", began), None, "before there were failures");
        let throttle = {
            for _ in 0..FAILURES_MAX {
                throttle.failed(source(1), began);
            }
            throttle
        };
        let looked_up = |short: &str, at: Instant| throttle.refuses(source(1), short, at).is_none();
        let guesses: u32 = (0..1_000).map(|ms| u32::from(looked_up("guess", began + Duration::from_millis(ms)))).sum();
        assert_eq!(guesses, 10, "ten lookups in a second");
        assert!((0..1_000).all(|ms| looked_up("agent", began + Duration::from_millis(ms))));
        assert!(looked_up("guess", began + WINDOW));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_source() {
        let address = |text: &str| Source::of(text.parse::<Ipv6Addr>().unwrap().into());
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_ne!(source(1), source(2));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let began = Instant::now();
        let throttle = exhausted(began);
        for number in 0..SOURCES_MAX as u32 {
            throttle.failed(source(1_000 + number), began + Duration::from_secs(1));
        }
        let sizes = |state: &State| [state.windows.len(), state.by_age.len()];
        assert_eq!(sizes(&throttle.lock()), [SOURCES_MAX, SOURCES_MAX]);
        assert_eq!(throttle.failed(source(1), began + Duration::from_secs(1)), None, "forgotten");
        for number in 0..=KEYS_MAX {
            throttle.succeeded(&number.to_string());
        }
        let sizes = |state: &State| [state.right.len(), state.right_by_age.len()];
        assert_eq!(sizes(&throttle.lock()), [KEYS_MAX, KEYS_MAX]);
        assert!(!throttle.lock().right.contains("0"));
    }
}
