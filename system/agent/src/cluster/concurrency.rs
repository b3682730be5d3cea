//! Runs several requests to the cluster concurrently, up to a limit.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// Number of requests of one pass that run at the same time.
const CONCURRENT_MAX: usize = 8;

/// Runs `call` for each item and returns the results in the order of the items. Every call runs to its end, also after
/// another one failed.
pub async fn run_concurrently<T, F: Future>(items: Vec<T>, call: impl Fn(T) -> F) -> Vec<F::Output> {
    let lanes = CONCURRENT_MAX.min(items.len());
    let pending = Mutex::new(items.into_iter().enumerate());
    // Each lane polls one call after another in place: a call is a future of some kilobytes, which is not moved for each item.
    let run_lane = async || {
        let mut results = Vec::new();
        while let Some((index, item)) = take_next(&pending) {
            results.push((index, call(item).await));
        }
        results
    };
    let mut running: FuturesUnordered<_> = (0..lanes).map(|_| run_lane()).collect();
    let mut results: Vec<(usize, F::Output)> = Vec::new();
    while let Some(more) = running.next().await {
        results.extend(more);
    }
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, output)| output).collect()
}

fn take_next<T>(pending: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    // Taking an item cannot panic half way, so a poisoned lock still holds a valid iterator.
    pending.lock().unwrap_or_else(PoisonError::into_inner).next()
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn a_slow_call_delays_no_other_and_results_keep_the_order_of_the_items() {
        const CALLS: usize = 3 * CONCURRENT_MAX;
        let (last, numbers) = (&Notify::new(), (0..CALLS).collect::<Vec<_>>());
        let call = |number| async move {
            match number {
                // Ends only after the last call, which would never begin if it had to wait for this one.
                0 => last.notified().await,
                _ if number == CALLS - 1 => last.notify_one(),
                _ => {}
            }
            number
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(run_concurrently(numbers.clone(), call)), numbers);
    }
}
