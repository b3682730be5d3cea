//! Readiness: if the store accepts changes, checked at most once per second however often it is asked.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Time limit for the store to respond.
const STORE_TIME_MAX: Duration = Duration::from_secs(1);
/// Time for which a success is repeated without another check: any client may ask, and a check writes.
const READY_TIME: Duration = Duration::from_secs(1);
/// Time for which a failure is repeated: each check of a database whose counter is held may leave a session in its queue.
const UNREADY_TIME: Duration = Duration::from_secs(2);

/// Result of the last check.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<CheckResult>>);

#[derive(Clone, Copy, Debug)]
struct CheckResult {
    is_ready: bool,
    valid_until: Instant,
}

impl Readiness {
    /// Returns true if the store accepts changes. Requests that arrive during a check get its result.
    pub(crate) async fn check<F, E>(&self, check: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = Result<(), E>>,
    {
        let mut last = self.0.lock().await;
        if let Some(result) = last.filter(|result| Instant::now() < result.valid_until) {
            return result.is_ready;
        }
        let is_ready = matches!(timeout(STORE_TIME_MAX, check()).await, Ok(Ok(())));
        let valid_for = if is_ready { READY_TIME } else { UNREADY_TIME };
        *last = Some(CheckResult { is_ready, valid_until: Instant::now() + valid_for });
        is_ready
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_store_that_fails_or_does_not_respond_is_not_ready() {
        assert!(Readiness::default().check(|| ready(Ok::<_, ()>(()))).await);
        assert!(!Readiness::default().check(|| ready(Err(()))).await);
        assert!(!Readiness::default().check(pending::<Result<(), ()>>).await);
    }

    #[tokio::test]
    async fn many_requests_make_one_check_per_second() {
        let (readiness, checks) = (Readiness::default(), Cell::new(0));
        let check = || {
            checks.set(checks.get() + 1);
            ready(Ok::<_, ()>(()))
        };
        for _ in 0..10 {
            assert!(readiness.check(check).await);
        }
        assert_eq!(checks.get(), 1);
        tokio::time::sleep(READY_TIME).await;
        assert!(readiness.check(check).await);
        assert_eq!(checks.get(), 2);
    }
}
