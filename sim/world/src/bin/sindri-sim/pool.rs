//! Runs independent jobs on a few threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs each job once, on `threads` threads; returns the results in the order of the jobs.
pub fn run_all<J: Sync, R: Send>(jobs: &[J], threads: u32, run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, job)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(index).map(|job| (index, job))
                } {
                    let result = run(job);
                    results.lock().expect("no thread panics while it stores a result")[index] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("every thread has ended");
    results.into_iter().map(|result| result.expect("every job was taken by a thread")).collect()
}
