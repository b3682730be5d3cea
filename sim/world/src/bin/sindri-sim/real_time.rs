//! Real time, on threads that are not simulated.

use std::time::Instant;

/// Returns the real time.
#[expect(clippy::disallowed_methods, reason = "measures how long the simulation itself takes")]
pub fn now() -> Instant {
    Instant::now()
}
