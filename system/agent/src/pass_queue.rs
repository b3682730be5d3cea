//! Which stacks are due for a pass: each at most once, however often it was asked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::StackId;
use tokio::sync::Notify;

/// Why a stack is due, from the least to the most pressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Something happened to an object of it.
    Seen,
    /// It is looked at with every poll.
    Poll,
    /// Something else is wanted of it.
    Changed,
}

/// The stacks that are due.
#[derive(Default)]
pub struct Queue {
    due: Mutex<BTreeMap<StackId, Why>>,
    asked: Notify,
}

impl Queue {
    /// Asks for a pass of a stack. An event of one that is due already wakes nobody: there may be thousands. A poll always does,
    /// because what may begin can have changed with it.
    pub fn ask(&self, stack: StackId, why: Why) {
        let is_due = {
            let mut due = self.lock();
            let before = due.get(&stack).copied();
            due.insert(stack, before.map_or(why, |before| before.max(why)));
            before.is_some()
        };
        if !is_due || why > Why::Seen {
            self.asked.notify_one();
        }
    }

    /// Why a stack is due, if it is.
    pub fn why(&self, stack: StackId) -> Option<Why> {
        self.lock().get(&stack).copied()
    }

    /// A pass of the stack begins: what is asked for from now on is for the next one.
    pub fn begin(&self, stack: StackId) {
        self.lock().remove(&stack);
    }

    /// Forgets stacks that nobody speaks of any more.
    pub fn retain(&self, is_known: impl Fn(StackId) -> bool) {
        self.lock().retain(|stack, _| is_known(*stack));
    }

    /// Ends when something was asked for since the last time.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StackId, Why>> {
        // Nothing here can be left half done.
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn stack(digit: char) -> StackId {
        format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
    }

    #[test]
    fn a_thousand_events_of_one_stack_are_one_pass_and_the_most_pressing_reason_counts() {
        let queue = Queue::default();
        queue.ask(stack('1'), Why::Changed);
        (0..1000).for_each(|_| queue.ask(stack('1'), Why::Seen));
        assert_eq!(queue.why(stack('1')), Some(Why::Changed));
        assert_eq!(queue.why(stack('2')), None, "no other stack is bothered");
        queue.begin(stack('1'));
        assert_eq!(queue.why(stack('1')), None);
        queue.ask(stack('1'), Why::Seen);
        assert_eq!(queue.why(stack('1')), Some(Why::Seen), "what happens during a pass is for the next");
    }

    #[test]
    fn events_of_a_stack_that_is_due_wake_nobody_and_polls_always_do() {
        let queue = Queue::default();
        let wakes = |why: Why| {
            queue.ask(stack('1'), why);
            queue.asked().now_or_never().is_some()
        };
        assert!(wakes(Why::Seen));
        assert!(!wakes(Why::Seen));
        assert!(wakes(Why::Changed) && !wakes(Why::Seen));
        assert!(wakes(Why::Changed) && wakes(Why::Poll), "it may have been due while nothing could begin");
        queue.begin(stack('1'));
        assert!(wakes(Why::Seen), "a pass has begun since");
    }
}
