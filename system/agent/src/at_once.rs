//! Several calls to the cluster at once, but not too many.

use std::future::Future;

use futures_util::{StreamExt, stream};

/// So many calls of one pass are under way at once.
const CALLS_MAX: usize = 8;

/// Ends when all have ended; the results are in the order of the futures. None is ever dropped half done.
pub async fn at_once<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    // Collected first: a closure that makes them from borrowed items would not do in a task that may change threads.
    let futures: Vec<F> = futures.into_iter().collect();
    stream::iter(futures).buffered(CALLS_MAX).collect().await
}
