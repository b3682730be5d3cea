//! Several calls to the cluster at once, but not too many.

use std::future::Future;

use futures_util::{StreamExt, stream};

/// So many calls of one pass are under way at once.
const CALLS_MAX: usize = 8;

/// Ends when all have ended; the results are in the order of the futures. None is ever dropped half done.
pub async fn at_once<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let numbered = futures.into_iter().enumerate().map(|(number, future)| async move { (number, future.await) });
    // Collected first: a closure that makes them from borrowed items would not do in a task that may change threads.
    let numbered: Vec<_> = numbered.collect();
    // The next one begins as soon as any has ended: in order, one slow call would hold up all that come after it.
    let mut ended: Vec<(usize, F::Output)> = stream::iter(numbered).buffer_unordered(CALLS_MAX).collect().await;
    ended.sort_unstable_by_key(|(number, _)| *number);
    ended.into_iter().map(|(_, output)| output).collect()
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn a_slow_call_holds_up_no_other_and_the_results_keep_their_order() {
        const CALLS: usize = 3 * CALLS_MAX;
        let last = &Notify::new();
        let calls = (0..CALLS).map(|number| async move {
            match number {
                // It ends only after the last one, which would never begin if it had to wait for this one.
                0 => last.notified().await,
                _ if number == CALLS - 1 => last.notify_one(),
                _ => {}
            }
            number
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(at_once(calls)), (0..CALLS).collect::<Vec<_>>());
    }
}
