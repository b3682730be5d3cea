//! Stacks of this agent that are ready, for the stacks that depend on them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sindri_model::StackId;
use sindri_model::wire::StackDependency;

/// Stacks whose newest revision is applied and ready. Empty at the start of a process.
#[derive(Default)]
pub struct ReadyStacks(Mutex<BTreeSet<StackId>>);

impl ReadyStacks {
    /// Records whether a stack is ready; returns true if it was not before, and is now.
    pub fn record(&self, stack: StackId, is_ready: bool) -> bool {
        let mut ready = self.lock();
        if is_ready {
            return ready.insert(stack);
        }
        ready.remove(&stack);
        false
    }

    /// Returns the names of the dependencies that are not ready, or not on this cluster.
    pub fn find_unready(&self, dependencies: &[StackDependency]) -> Vec<String> {
        let ready = self.lock();
        let is_unready = |dependency: &&StackDependency| !dependency.stack_id.is_some_and(|id| ready.contains(&id));
        dependencies.iter().filter(is_unready).map(|dependency| dependency.name.clone()).collect()
    }

    /// Forgets the other stacks.
    pub fn retain(&self, stacks: &BTreeSet<StackId>) {
        self.lock().retain(|stack| stacks.contains(stack));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<StackId>> {
        // Each change under the lock is complete in itself, so a poisoned lock still holds a valid set.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_counts_once_it_is_ready() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let named = |name: &str, stack_id| StackDependency { name: name.to_owned(), stack_id };
        let (ready, dependencies) = (ReadyStacks::default(), [named("db", Some(stack)), named("gone", None)]);
        assert_eq!(ready.find_unready(&dependencies), ["db", "gone"]);
        assert!(!ready.record(stack, false) && ready.record(stack, true) && !ready.record(stack, true));
        assert_eq!(ready.find_unready(&dependencies), ["gone"]);
        assert!(!ready.record(stack, false));
        assert_eq!(ready.find_unready(&dependencies), ["db", "gone"]);
    }
}
