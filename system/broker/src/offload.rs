//! Runs computations that take long away from the threads that serve connections.
//!
//! The process passes in a function that runs work on a thread. Without it, as in the simulation, work runs inline.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

/// Function that runs work on another thread.
pub type RunOnThread = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Limit on computations that run at once, so that they leave processors to requests.
const AT_ONCE_MAX: usize = 2;

/// Place where long computations run.
pub(crate) struct Offload {
    run: Option<RunOnThread>,
    permits: Arc<Semaphore>,
}

impl Offload {
    pub(crate) fn new(run: Option<RunOnThread>) -> Self {
        Self { run, permits: Arc::new(Semaphore::new(AT_ONCE_MAX)) }
    }

    /// Runs a computation when its turn comes. None: it panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let Some(run) = &self.run else { return Some(work()) };
        let permit = self.permits.clone().acquire_owned().await.ok()?;
        let (done, result) = oneshot::channel();
        run(Box::new(move || {
            // Held by the work and not by the request, whose client may disconnect.
            let _permit = permit;
            drop(done.send(work()));
        }));
        result.await.ok()
    }
}

impl fmt::Debug for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Offload")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the process runs such work on threads too")]
    fn threads() -> Offload {
        Offload::new(Some(Arc::new(|work| drop(std::thread::spawn(work)))))
    }

    #[tokio::test]
    async fn work_runs_inline_without_threads_and_elsewhere_with_them() {
        let here = std::thread::current().id();
        assert_eq!(Offload::new(None).run(move || std::thread::current().id()).await, Some(here));
        assert_ne!(threads().run(move || std::thread::current().id()).await, Some(here));
    }

    #[tokio::test]
    async fn work_that_panics_has_no_result_and_the_next_runs() {
        let offload = threads();
        for _ in 0..AT_ONCE_MAX + 1 {
            assert_eq!(offload.run(|| panic!("on purpose")).await, None::<()>);
        }
        assert_eq!(offload.run(|| 1).await, Some(1));
    }
}
