//! Real time.

use std::time::Instant;

/// Returns the current real time.
#[expect(clippy::disallowed_methods, reason = "figures are about real time")]
pub fn now() -> Instant {
    Instant::now()
}
