//! Several calls to the cluster at once, but not too many.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// So many calls of one pass are under way at once.
const CALLS_MAX: usize = 8;

/// Makes a call for each item. Ends when all have ended; the results are in the order of the items. No call is ever dropped
/// half done.
pub async fn at_once<T, F: Future>(items: Vec<T>, call: impl Fn(T) -> F) -> Vec<F::Output> {
    let makers = CALLS_MAX.min(items.len());
    let waiting = Mutex::new(items.into_iter().enumerate());
    // Each makes one call after another, all in the same place: a call under way is some kilobytes, which are not moved for every one.
    let make_calls = async || {
        let mut ended = Vec::new();
        while let Some((number, item)) = next(&waiting) {
            ended.push((number, call(item).await));
        }
        ended
    };
    let mut making: FuturesUnordered<_> = (0..makers).map(|_| make_calls()).collect();
    let mut ended: Vec<(usize, F::Output)> = Vec::new();
    while let Some(more) = making.next().await {
        ended.extend(more);
    }
    ended.sort_unstable_by_key(|(number, _)| *number);
    ended.into_iter().map(|(_, output)| output).collect()
}

fn next<T>(waiting: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    // Taking an item cannot fail half way.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).next()
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn a_slow_call_holds_up_no_other_and_the_results_keep_their_order() {
        const CALLS: usize = 3 * CALLS_MAX;
        let (last, numbers) = (&Notify::new(), (0..CALLS).collect::<Vec<_>>());
        let call = |number| async move {
            match number {
                // It ends only after the last one, which would never begin if it had to wait for this one.
                0 => last.notified().await,
                _ if number == CALLS - 1 => last.notify_one(),
                _ => {}
            }
            number
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(at_once(numbers.clone(), call)), numbers);
    }
}
