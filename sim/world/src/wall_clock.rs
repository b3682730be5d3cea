//! The wall clock of a run.

use jiff::Timestamp;

use crate::libc_shim;

/// Returns the virtual wall time of the run on this thread.
pub fn wall_time() -> Timestamp {
    let nanos = i128::from(libc_shim::EPOCH_SECONDS) * 1_000_000_000 + i128::from(libc_shim::now());
    Timestamp::from_nanosecond(nanos).expect("a run ends long before the calendar does")
}
