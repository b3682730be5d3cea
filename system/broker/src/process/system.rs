//! Clock, entropy and runtime of the process.

use std::io;

use jiff::Timestamp;
use sindri_model::{Clock, Entropy};
use tokio::runtime::{Builder, Runtime};

/// Builds a runtime with this number of threads.
pub fn build_runtime(workers: usize) -> io::Result<Runtime> {
    // One worker needs no multi-threaded scheduler.
    if workers == 1 {
        return Builder::new_current_thread().enable_all().build();
    }
    Builder::new_multi_thread().worker_threads(workers).enable_all().build()
}

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the process owns the wall clock")]
pub fn system_clock() -> Clock {
    Clock::new(Timestamp::now)
}

/// Entropy of the system.
#[expect(clippy::disallowed_methods, reason = "the process owns entropy")]
pub fn system_entropy() -> Entropy {
    Entropy::new(|bytes| getrandom::fill(bytes).expect("keys need entropy of the system"))
}
