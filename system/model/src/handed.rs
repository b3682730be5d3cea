//! What is handed in at `main`: wall time and entropy. The simulated world hands in its own.
//!
//! Elapsed time is not here: it comes from `tokio::time`, which is virtual by itself in a simulation.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// The wall clock.
#[derive(Clone)]
pub struct Clock(Arc<Now>);

type Now = dyn Fn() -> Timestamp + Send + Sync;

impl Clock {
    /// A clock that asks `now` each time it is read.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current wall time, cut to microseconds: the finest that every store keeps.
    pub fn now(&self) -> Timestamp {
        let exact = (self.0)();
        Timestamp::from_microsecond(exact.as_microsecond()).unwrap_or(exact)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A source of unpredictable bytes.
#[derive(Clone)]
pub struct Entropy(Arc<Fill>);

type Fill = dyn Fn(&mut [u8]) + Send + Sync;

impl Entropy {
    /// An entropy source that lets `fill` write the bytes.
    pub fn new(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    /// `N` fresh bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        bytes
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        u64::from_le_bytes(self.bytes()) % bound
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}
