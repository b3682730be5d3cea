//! The injected wall clock. `main` passes the real one, the simulation one with virtual time.
//!
//! Elapsed time is not here: it comes from `tokio::time`, which is virtual in the simulation.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// The wall clock.
#[derive(Clone)]
pub struct Clock(Arc<Now>);

type Now = dyn Fn() -> Timestamp + Send + Sync;

impl Clock {
    /// Creates a clock that calls `now` each time it is read.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the current wall time, truncated to microseconds: the finest resolution that every store keeps.
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
