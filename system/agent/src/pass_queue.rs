//! Queue of the stacks that are due for a pass. A stack is in it at most once, however often it was requested.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::StackId;
use tokio::sync::Notify;

/// Reason for a pass, in ascending priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// An object of the stack changed in the cluster.
    ObjectEvent,
    /// Every poll requests a pass of each stack.
    Poll,
    /// The target state of the stack changed.
    TargetChanged,
}

/// Stacks that are due, each with its most important reason.
#[derive(Default)]
pub struct PassQueue {
    due: Mutex<BTreeMap<StackId, Reason>>,
    requested: Notify,
}

impl PassQueue {
    /// Requests a pass of a stack. An object event of a stack that is already due does not wake the worker, because there
    /// may be thousands. A poll always does, because it may have changed which stacks may begin.
    pub fn request(&self, stack: StackId, reason: Reason) {
        let was_due = {
            let mut due = self.lock();
            let before = due.get(&stack).copied();
            due.insert(stack, before.map_or(reason, |before| before.max(reason)));
            before.is_some()
        };
        if !was_due || reason > Reason::ObjectEvent {
            self.requested.notify_one();
        }
    }

    /// Wakes the worker without a request, because passes have to end.
    pub fn wake(&self) {
        self.requested.notify_one();
    }

    /// Returns the reason why a stack is due; `None` if it is not.
    pub fn reason(&self, stack: StackId) -> Option<Reason> {
        self.lock().get(&stack).copied()
    }

    /// Removes a stack because its pass begins. Later requests are for the next pass.
    pub fn begin_pass(&self, stack: StackId) {
        self.lock().remove(&stack);
    }

    /// Removes the stacks for which `keep` is false.
    pub fn retain(&self, keep: impl Fn(StackId) -> bool) {
        self.lock().retain(|stack, _| keep(*stack));
    }

    /// Waits for a request since the last wait.
    pub async fn wait_for_request(&self) {
        self.requested.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StackId, Reason>> {
        // Each change under the lock is complete in itself, so a poisoned lock still holds a valid map.
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
    fn a_thousand_events_of_one_stack_are_one_pass_with_the_most_important_reason() {
        let queue = PassQueue::default();
        queue.request(stack('1'), Reason::TargetChanged);
        (0..1000).for_each(|_| queue.request(stack('1'), Reason::ObjectEvent));
        assert_eq!(queue.reason(stack('1')), Some(Reason::TargetChanged));
        assert_eq!(queue.reason(stack('2')), None, "other stacks are not due");
        queue.begin_pass(stack('1'));
        assert_eq!(queue.reason(stack('1')), None);
        queue.request(stack('1'), Reason::ObjectEvent);
        assert_eq!(queue.reason(stack('1')), Some(Reason::ObjectEvent), "an event during a pass causes the next one");
    }

    #[test]
    fn events_of_a_stack_that_is_due_do_not_wake_the_worker_and_polls_always_do() {
        let queue = PassQueue::default();
        let wakes = |reason: Reason| {
            queue.request(stack('1'), reason);
            queue.wait_for_request().now_or_never().is_some()
        };
        assert!(wakes(Reason::ObjectEvent));
        assert!(!wakes(Reason::ObjectEvent));
        assert!(wakes(Reason::TargetChanged) && !wakes(Reason::ObjectEvent));
        assert!(wakes(Reason::TargetChanged) && wakes(Reason::Poll), "it may have been due while nothing could begin");
        queue.begin_pass(stack('1'));
        assert!(wakes(Reason::ObjectEvent), "a pass has begun since");
    }
}
