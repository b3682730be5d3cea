//! Target state that the broker last returned, shared by the poller and the worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sindri_model::wire::DeploymentObject;
use sindri_model::{Epoch, StackId};

use super::claims::Claims;
use super::revision::Revision;

/// Annotations of stacks, which select their policies.
pub type PolicyAnnotations = BTreeMap<StackId, BTreeMap<String, String>>;

/// Target state of this agent; empty until the broker has returned one.
#[derive(Default)]
pub struct LatestTargetState {
    snapshot: Mutex<Snapshot>,
    is_active: AtomicBool,
    /// Number of times that the target state was replaced.
    version: AtomicU64,
}

/// Content of one poll response.
#[derive(Default)]
struct Snapshot {
    revisions: Vec<Arc<Revision>>,
    claims: Arc<Claims>,
    policies: PolicyAnnotations,
    /// Epoch of the broker's database.
    epoch: Option<Epoch>,
}

/// Revision of one stack in a poll response.
pub struct PolledRevision {
    revision: Arc<Revision>,
    /// True if the previous response did not have it.
    is_new: bool,
}

impl LatestTargetState {
    /// Returns true if the broker wants the agent to act.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Sets whether the agent acts.
    pub fn set_active(&self, is_active: bool) {
        self.is_active.store(is_active, Ordering::Relaxed);
    }

    /// Returns a number that is another one after each change of the target state.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Returns one revision or removal for each stack, by ascending sequence; none while the agent is inactive.
    pub fn revisions(&self) -> Vec<Arc<Revision>> {
        if self.is_active() { self.lock().revisions.clone() } else { Vec::new() }
    }

    /// Returns the epoch of the broker's database; a new one begins when the database is restored from a backup.
    pub fn epoch(&self) -> Option<Epoch> {
        self.lock().epoch
    }

    /// Returns the claims of all stacks.
    pub fn claims(&self) -> Arc<Claims> {
        self.lock().claims.clone()
    }

    /// Returns the annotations of a stack.
    pub fn annotations(&self, stack: StackId) -> BTreeMap<String, String> {
        self.lock().policies.get(&stack).cloned().unwrap_or_default()
    }

    /// Parses the deployment objects of a response; reuses the revisions that are already known.
    pub fn parse_revisions(&self, objects: Vec<DeploymentObject>) -> Vec<PolledRevision> {
        let before = self.lock().revisions.clone();
        let mut known: BTreeMap<_, _> = before.into_iter().map(|revision| (revision.id, revision)).collect();
        let parse = |object: DeploymentObject| match known.remove(&object.id).filter(|known| known.is_same_as(&object))
        {
            Some(revision) => PolledRevision { revision, is_new: false },
            None => PolledRevision { revision: Arc::new(Revision::from_wire(object)), is_new: true },
        };
        objects.into_iter().map(parse).collect()
    }

    /// Replaces the target state; returns the stacks whose revision or policy changed, or all after a restore of the
    /// broker's database. `claims` are empty claims for this
    /// cluster.
    pub fn replace(
        &self,
        revisions: Vec<PolledRevision>,
        policies: PolicyAnnotations,
        epoch: Option<Epoch>,
        mut claims: Claims,
    ) -> Vec<StackId> {
        let mut snapshot = self.lock();
        self.version.fetch_add(1, Ordering::Relaxed);
        let before = std::mem::take(&mut *snapshot);
        let mut changed = Vec::new();
        for PolledRevision { revision, is_new } in revisions {
            let stack = revision.stack_id;
            let has_changed = is_new || before.policies.get(&stack) != policies.get(&stack) || before.epoch != epoch;
            claims.add(stack, revision.sequence_id, &revision.declared);
            changed.extend(has_changed.then_some(stack));
            snapshot.revisions.push(revision);
        }
        (snapshot.claims, snapshot.policies, snapshot.epoch) = (Arc::new(claims), policies, epoch);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // No code panics between the parts of a change, so a poisoned lock still holds a valid snapshot.
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
