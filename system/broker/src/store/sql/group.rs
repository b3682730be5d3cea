//! Operations of one kind that wait at the same time and run together: in one transaction, and each statement once for all.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::shared::session::{Session, failed};
use crate::store::records::{StoreError, StoreFuture};

/// An operation that runs together with others of its kind.
pub(crate) trait Grouped: Sized + Send + 'static {
    /// Result of one operation.
    type Output: Send + 'static;

    /// Runs operations, and returns as many results, in their order. Everything is checked before anything is written, so that an
    /// operation that is rejected affects no other. The outer error is one of the database; then nothing was written.
    fn run_all(
        session: &mut dyn Session,
        operations: Vec<Self>,
    ) -> StoreFuture<'_, Vec<Result<Self::Output, StoreError>>>;
}

/// Runs one operation.
pub(crate) async fn run_one<G: Grouped>(session: &mut dyn Session, operation: G) -> Result<G::Output, StoreError> {
    let result = G::run_all(session, vec![operation]).await?.pop();
    result.unwrap_or_else(|| Err(failed("an operation has no result")))
}

/// Sends the result of an operation to its caller.
pub(crate) type Caller<G> = oneshot::Sender<Result<<G as Grouped>::Output, StoreError>>;

/// An operation whose caller awaits its result.
pub(crate) struct Pending<G: Grouped> {
    pub operation: G,
    pub caller: Caller<G>,
    queued_at: Instant,
}

impl<G: Grouped> Pending<G> {
    pub(crate) fn new(operation: G) -> (Self, oneshot::Receiver<Result<G::Output, StoreError>>) {
        let (caller, result) = oneshot::channel();
        (Self { operation, caller, queued_at: Instant::now() }, result)
    }

    /// Returns true if the caller still waits. An operation whose caller got an error must not run later, after a newer one.
    pub(crate) fn is_awaited(&self, wait_max: Duration) -> bool {
        !self.caller.is_closed() && self.queued_at.elapsed() < wait_max
    }
}

/// Sends callers the results of their operations, in the same order; if the database failed, its error to all of them.
pub(crate) fn send_results<G: Grouped>(
    callers: Vec<Caller<G>>,
    results: Result<Vec<Result<G::Output, StoreError>>, StoreError>,
) {
    let results = results.unwrap_or_else(|error| callers.iter().map(|_| Err(error.clone())).collect());
    for (caller, result) in callers.into_iter().zip(results) {
        // The caller may have stopped waiting; its operation is durable all the same.
        let _ = caller.send(result);
    }
}

/// Separates the error of one operation from one of the database, which is that of its whole group.
pub(crate) fn separate_error<T>(result: Result<T, StoreError>) -> Result<Result<T, StoreError>, StoreError> {
    match result {
        Err(error @ (StoreError::Unavailable | StoreError::Failed(_))) => Err(error),
        other => Ok(other),
    }
}
