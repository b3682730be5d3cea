//! A fresh thread for each run: everything in thread-locals (hash keys, generators, the libc shim, the disk, the trace)
//! starts from the seed and from nothing else.

use crate::{disk, libc_shim, trace};

/// The futures of broker and agent need a large stack in a debug build.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Runs `body` on a thread whose clocks, entropy, disk and trace are virtual and follow from the seed.
///
/// A panic of `body` is passed on.
pub fn isolate<T: Send>(seed: u64, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK_BYTES).name(format!("seed-{seed}"));
        let spawned = worker.spawn_scoped(scope, move || {
            libc_shim::activate(seed);
            fastrand::seed(seed);
            disk::prepare(seed);
            trace::begin();
            let _log = tracing::subscriber::set_default(trace::LogToTrace);
            body()
        });
        let handle = spawned.expect("the system can start one more thread");
        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
