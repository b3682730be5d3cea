//! Several calls to the cluster at once, but not too many.

use std::future::Future;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// So many calls of one pass are under way at once.
const CALLS_MAX: usize = 8;

/// Makes a call for each item. Ends when all have ended; the results are in the order of the items. No call is ever dropped
/// half done.
pub async fn at_once<T, F: Future>(items: Vec<T>, call: impl Fn(T) -> F) -> Vec<F::Output> {
    let mut ended: Vec<(usize, F::Output)> = Vec::with_capacity(items.len());
    // A call is made when there is room for it: each takes some kilobytes from its first moment on.
    let mut waiting = items.into_iter().map(call).enumerate();
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < CALLS_MAX
            && let Some((number, call)) = waiting.next()
        {
            under_way.push(async move { (number, call.await) });
        }
        // The next one begins as soon as any has ended: in order, one slow call would hold up all that come after it.
        match under_way.next().await {
            Some(call) => ended.push(call),
            None => break,
        }
    }
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
