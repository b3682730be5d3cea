//! Stacks of this agent that are ready, for the stacks that depend on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sindri_model::wire::{DEPENDS_ON_ANNOTATION, StackDependency};
use sindri_model::{RevisionId, StackId};

use crate::target::revision::Revision;

/// Stacks that are ready, each with the revision that is applied. Empty at the start of a process.
#[derive(Default)]
pub struct ReadyStacks(Mutex<BTreeMap<StackId, RevisionId>>);

impl ReadyStacks {
    /// Records the revision with which a stack is ready, if it is; returns true if it was not ready with it before.
    pub fn record(&self, stack: StackId, revision: Option<RevisionId>) -> bool {
        let mut ready = self.lock();
        match revision {
            Some(revision) => ready.insert(stack, revision) != Some(revision),
            None => {
                ready.remove(&stack);
                false
            }
        }
    }

    /// Returns the dependencies that are not on this cluster, or not ready with their newest revision: their names, with
    /// advice for those that will not become ready by themselves.
    pub fn find_unready(&self, dependencies: &[StackDependency], newest: &[Arc<Revision>]) -> Vec<String> {
        let ready = self.lock();
        let is_newest_ready = |stack: StackId| {
            let newest = newest.iter().find(|revision| revision.stack_id == stack);
            newest.is_some_and(|newest| ready.get(&stack) == Some(&newest.id))
        };
        let is_unready = |dependency: &&StackDependency| !dependency.stack_id.is_some_and(is_newest_ready);
        dependencies.iter().filter(is_unready).map(describe_unready).collect()
    }

    /// Forgets the other stacks.
    pub fn retain(&self, stacks: &BTreeSet<StackId>) {
        self.lock().retain(|stack, _| stacks.contains(stack));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StackId, RevisionId>> {
        // Each change under the lock is complete in itself, so a poisoned lock still holds a valid map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe_unready(StackDependency { name, stack_id }: &StackDependency) -> String {
    match stack_id {
        Some(_) => name.clone(),
        None => format!(
            "{name} (it is not targeted at this cluster, or is removed: target it here, or remove it from {DEPENDS_ON_ANNOTATION})"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::copy::fixtures::revision;

    #[test]
    fn a_dependency_counts_once_it_is_ready() {
        let [old, new] = [1, 2].map(|sequence| revision(1, sequence, ""));
        let stack = old.stack_id;
        let named = |name: &str, stack_id| StackDependency { name: name.to_owned(), stack_id };
        let (ready, dependencies) = (ReadyStacks::default(), [named("db", Some(stack)), named("gone", None)]);
        let gone = &*describe_unready(&dependencies[1]);
        assert!(gone.starts_with("gone (it is not targeted") && gone.contains(DEPENDS_ON_ANNOTATION), "{gone}");
        let (is_old, is_new) = (Some(old.id), Some(new.id));
        let [old, new] = [old, new].map(|wire| [Arc::new(Revision::from_wire(wire))]);
        assert_eq!(ready.find_unready(&dependencies, &old), ["db", gone]);
        assert!(!ready.record(stack, None) && ready.record(stack, is_old) && !ready.record(stack, is_old));
        assert_eq!(ready.find_unready(&dependencies, &old), [gone]);
        assert_eq!(ready.find_unready(&dependencies, &new), ["db", gone], "ready with an older revision");
        assert!(ready.record(stack, is_new), "dependents continue");
        assert_eq!(ready.find_unready(&dependencies, &new), [gone]);
        assert!(!ready.record(stack, None));
        assert_eq!(ready.find_unready(&dependencies, &new), ["db", gone]);
    }
}
