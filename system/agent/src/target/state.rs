//! Target state that the broker last returned, or its copy in the cluster; shared by the poller, the worker and the saver of
//! the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sindri_model::wire::{DeploymentObject, StackDependency, StackPolicy, SubmittingRequests};
use sindri_model::{Epoch, ObjectKey, RevisionId, Sequence, StackId};
use tokio::sync::Notify;

use super::claims::Claims;
use super::copy::{CopyContent, StackCopy};
use super::revision::Revision;

/// Annotations of stacks, which select their policies, and the stacks that they depend on.
pub type StackPolicies = BTreeMap<StackId, StackPolicy>;

/// Target state of this agent; empty until the broker has returned one or the copy was read.
#[derive(Default)]
pub struct LatestTargetState {
    snapshot: Mutex<Snapshot>,
    is_active: AtomicBool,
    /// True once the broker has said whether the agent is active.
    is_status_known: AtomicBool,
    /// Notified when the copy in the cluster may have to change.
    changed: Notify,
}

/// Content of one poll response.
#[derive(Default)]
struct Snapshot {
    revisions: Vec<Arc<Revision>>,
    claims: Arc<Claims>,
    policies: StackPolicies,
    /// Epoch of the broker's database; `None` before the broker has returned a target state.
    epoch: Option<Epoch>,
}

/// Revisions and policies of one poll response.
pub struct TargetContent {
    /// One revision or removal for each stack.
    pub revisions: Vec<Arc<Revision>>,
    /// Policies of the stacks.
    pub policies: StackPolicies,
    /// Sequence of the last change of the target state, if the broker tells it.
    pub version: Option<Sequence>,
}

/// Content that the copy in the cluster should have.
pub enum WantedCopy {
    /// No stack: the agent is inactive, and must not act after a restart either.
    Nothing,
    /// The stacks of the target state.
    Stacks {
        /// Epoch of the broker's database.
        epoch: Epoch,
        /// Revision and annotations of each stack.
        content: CopyContent,
    },
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

    /// Returns true once the broker has said whether the agent is active.
    pub fn is_status_known(&self) -> bool {
        self.is_status_known.load(Ordering::Relaxed)
    }

    /// Sets whether the broker wants the agent to act.
    pub fn set_active(&self, is_active: bool) {
        let was_known = self.is_status_known.swap(true, Ordering::Relaxed);
        let was_active = self.is_active.swap(is_active, Ordering::Relaxed);
        if !was_known || was_active != is_active {
            self.changed.notify_one();
        }
    }

    /// Waits for a change after which the copy in the cluster may have to change.
    pub async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Returns the content that the copy in the cluster should have; `None` if the broker has not said it yet.
    pub fn wanted_copy(&self) -> Option<WantedCopy> {
        if !self.is_active() {
            return self.is_status_known().then_some(WantedCopy::Nothing);
        }
        let snapshot = self.lock();
        let annotations =
            |stack: &StackId| snapshot.policies.get(stack).map(|policy| policy.annotations.clone()).unwrap_or_default();
        // A removal waits for the broker, and is gone from the target state some time after it was confirmed.
        let revisions = snapshot.revisions.iter().filter(|revision| !revision.is_deletion_marker);
        let content = revisions.map(|revision| (revision.clone(), annotations(&revision.stack_id))).collect();
        Some(WantedCopy::Stacks { epoch: snapshot.epoch?, content })
    }

    /// Returns true if there is no target state yet.
    pub fn is_empty(&self) -> bool {
        let snapshot = self.lock();
        snapshot.epoch.is_none() && snapshot.revisions.is_empty()
    }

    /// Uses the copy in the cluster until the broker responds. The agent was active when it was saved. `claims` are empty
    /// claims for this cluster. Changes nothing if the broker has said since whether the agent is active.
    pub fn use_copy(&self, stacks: Vec<StackCopy>, mut claims: Claims) {
        let mut snapshot = self.lock();
        if self.is_status_known() {
            return;
        }
        *snapshot = Snapshot::default();
        for StackCopy { annotations, revision } in stacks {
            let revision = Arc::new(Revision::from_copy(revision));
            claims.add_revision(&revision);
            // Only what was applied before is corrected, so that dependencies do not matter.
            let stack_id = revision.stack_id;
            snapshot.policies.insert(stack_id, StackPolicy { stack_id, annotations, depends_on: Vec::new() });
            snapshot.revisions.push(revision);
        }
        snapshot.claims = Arc::new(claims);
        self.is_active.store(true, Ordering::Relaxed);
    }

    /// Returns true if the agent is active, and the stack has this revision and these annotations.
    pub fn has_instruction(
        &self,
        stack: StackId,
        revision: RevisionId,
        annotations: &BTreeMap<String, String>,
    ) -> bool {
        let snapshot = self.lock();
        let is_newest = snapshot.revisions.iter().any(|newest| newest.stack_id == stack && newest.id == revision);
        let policy = snapshot.policies.get(&stack);
        self.is_active()
            && is_newest
            && policy.map_or(annotations.is_empty(), |policy| policy.annotations == *annotations)
    }

    /// Returns one revision or removal for each stack, by ascending sequence; none while the agent is inactive.
    pub fn revisions(&self) -> Vec<Arc<Revision>> {
        if self.is_active() { self.lock().revisions.clone() } else { Vec::new() }
    }

    /// Returns the revisions whose bundles the agent has, also while it is inactive.
    pub fn held_revisions(&self) -> Vec<Arc<Revision>> {
        self.lock().revisions.clone()
    }

    /// Returns the epoch of the broker's database; a new one begins when the database is restored from a backup.
    pub fn epoch(&self) -> Option<Epoch> {
        self.lock().epoch
    }

    /// Returns the revisions and policies of all stacks.
    pub fn content(&self) -> TargetContent {
        let snapshot = self.lock();
        let (revisions, policies) = (snapshot.revisions.clone(), snapshot.policies.clone());
        TargetContent { revisions, policies, version: snapshot.claims.version() }
    }

    /// Returns the claims of all stacks.
    pub fn claims(&self) -> Arc<Claims> {
        self.lock().claims.clone()
    }

    /// Records the objects of a revision that the cluster does not let its stack write.
    pub fn set_denied(&self, revision: &Revision, objects: BTreeSet<ObjectKey>) {
        let mut snapshot = self.lock();
        if let Some(claims) = snapshot.claims.with_denied(revision.stack_id, revision.sequence_id, objects) {
            snapshot.claims = Arc::new(claims);
        }
    }

    /// Returns the annotations of a stack.
    pub fn annotations(&self, stack: StackId) -> BTreeMap<String, String> {
        self.lock().policies.get(&stack).map(|policy| policy.annotations.clone()).unwrap_or_default()
    }

    /// Returns the stacks that a stack depends on.
    pub fn dependencies(&self, stack: StackId) -> Vec<StackDependency> {
        self.lock().policies.get(&stack).map(|policy| policy.depends_on.clone()).unwrap_or_default()
    }

    /// Parses the deployment objects of a response, which names the requests that submitted some of them; reuses the revisions
    /// that are already known.
    pub fn parse_revisions(
        &self,
        objects: Vec<DeploymentObject>,
        requests: &SubmittingRequests,
    ) -> Vec<PolledRevision> {
        let before = self.lock().revisions.clone();
        let mut known: BTreeMap<_, _> = before.into_iter().map(|revision| (revision.id, revision)).collect();
        let parse = |object: DeploymentObject| match known.remove(&object.id).filter(|known| known.is_same_as(&object))
        {
            Some(revision) => PolledRevision { revision, is_new: false },
            None => {
                let request = requests.0.get(&object.sequence_id);
                let revision = Revision::from_wire(object).with_request(request);
                PolledRevision { revision: Arc::new(revision), is_new: true }
            }
        };
        objects.into_iter().map(parse).collect()
    }

    /// Replaces the target state; returns the stacks whose revision or policy changed, or all after a restore of the
    /// broker's database. `claims` are empty claims for this
    /// cluster.
    pub fn replace(
        &self,
        revisions: Vec<PolledRevision>,
        policies: StackPolicies,
        epoch: Option<Epoch>,
        mut claims: Claims,
    ) -> Vec<StackId> {
        let mut snapshot = self.lock();
        let before = std::mem::take(&mut *snapshot);
        let mut changed = Vec::new();
        for PolledRevision { revision, is_new } in revisions {
            let stack = revision.stack_id;
            let has_changed = is_new || before.policies.get(&stack) != policies.get(&stack) || before.epoch != epoch;
            claims.add_revision(&revision);
            policies.get(&stack).into_iter().for_each(|policy| claims.add_policy(policy));
            changed.extend(has_changed.then_some(stack));
            snapshot.revisions.push(revision);
        }
        claims.keep_denied(&before.claims);
        (snapshot.claims, snapshot.policies, snapshot.epoch) = (Arc::new(claims), policies, epoch);
        self.changed.notify_one();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // No code panics between the parts of a change, so a poisoned lock still holds a valid snapshot.
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::copy::fixtures::revision;

    fn replace(target: &LatestTargetState, objects: Vec<DeploymentObject>) -> Vec<StackId> {
        let revisions = target.parse_revisions(objects, &SubmittingRequests::default());
        target.replace(revisions, StackPolicies::new(), Some(Epoch(1)), Claims::default())
    }

    /// Returns the sequences of the wanted copy; `None` if the broker has not said what it should have.
    fn wanted(target: &LatestTargetState) -> Option<Vec<i64>> {
        target.wanted_copy().map(|wanted| match wanted {
            WantedCopy::Nothing => Vec::new(),
            WantedCopy::Stacks { content, .. } => content.iter().map(|(revision, _)| revision.sequence_id.0).collect(),
        })
    }

    #[test]
    fn the_copy_follows_the_broker_and_is_empty_while_the_agent_is_inactive() {
        let target = LatestTargetState::default();
        assert_eq!(wanted(&target), None, "the broker has not responded");
        target.set_active(true);
        assert_eq!(wanted(&target), None, "the broker has sent no target state");
        let removal = DeploymentObject { is_deletion_marker: true, ..revision(2, 2, "") };
        replace(&target, vec![revision(1, 1, "a: 1"), removal]);
        assert_eq!(wanted(&target), Some(vec![1]), "a removal is not part of it");
        target.set_active(false);
        assert_eq!(wanted(&target), Some(Vec::new()));
        target.set_active(true);
        assert_eq!(wanted(&target), Some(vec![1]));
    }

    #[test]
    fn revisions_of_the_copy_are_used_until_the_broker_responds_and_then_every_stack_is_due() {
        let target = LatestTargetState::default();
        let copy = StackCopy { annotations: BTreeMap::new(), revision: revision(1, 1, "a: 1") };
        assert!(target.is_empty());
        target.use_copy(vec![copy.clone()], Claims::default());
        assert!(target.is_active() && !target.is_empty());
        assert!(target.revisions().iter().all(|revision| revision.is_from_copy()));
        assert_eq!((wanted(&target), target.epoch()), (None, None), "the copy is not saved again");
        target.set_active(true);
        let changed = replace(&target, vec![copy.revision.clone()]);
        assert_eq!(changed, [copy.revision.stack_id], "its deletes and reports were withheld");
        assert!(target.revisions().iter().all(|revision| !revision.is_from_copy()));
    }
}
