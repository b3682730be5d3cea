//! One pass of one stack: observe, plan, act.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, ObjectKey};
use thiserror::Error;

use crate::agent::Agent;
use crate::cluster::reflector::Watches;
use crate::cluster::{Applied, ClusterError};
use crate::pass::act::{ActError, Executor};
use crate::pass::approval::{self, HeldBack, Verdict};
use crate::pass::foreign_objects::strangers;
use crate::pass::inventory::{self, Inventory, InventoryError, Position};
use crate::pass::observe::{self, Desired, Goal, LiveSet, ObserveError};
use crate::pass::plan::{Hold, Observed, Plan, Refusal, Settled, Stage, Strangers, holds, plan};
use crate::stack::health::Present;
use crate::target::claims::Claims;
use crate::target::policy::Policy;
use crate::target::revision::Revision;

/// A pass that takes longer is given up: the next one begins from what it finds.
pub(crate) const PASS_MAX: Duration = Duration::from_secs(15 * 60);

/// What a pass leaves for the next one. All of it can be lost: a fresh process finds it again.
#[derive(Default)]
pub(crate) struct StackMemory {
    /// As it is in the cluster; `None` until it was read.
    inventory: Option<Inventory>,
    settled: Option<Settled>,
    /// The bundle of the target, read and placed, and what all of its objects leave to others.
    desired: Option<(Desired, String)>,
}

/// What a pass is about.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub agent: AgentId,
    pub revision: &'a Revision,
    pub claims: &'a Claims,
    pub policy: &'a Policy,
    pub watches: &'a Watches,
}

impl StackMemory {
    /// How many objects are the stack's, where that is known.
    pub(crate) fn managed(&self) -> Option<usize> {
        self.inventory.as_ref().map(|inventory| inventory.entries().count())
    }
}

/// A pass that was carried out.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// These are being deleted, and nothing more can be done until they are gone.
    pub leaving: Vec<Arc<ObjectKey>>,
    /// These were not as this revision had left them.
    pub drifted: Vec<Arc<ObjectKey>>,
    /// What waits for an approval.
    pub held: Option<HeldBack>,
    /// What is there of what is declared.
    pub present: Vec<Present>,
    /// Fields that something in the cluster rewrites whenever they are applied.
    pub rewritten: Vec<(Arc<ObjectKey>, String)>,
}

/// Why one pass of one stack did not reach its goal.
#[derive(Debug, Error)]
pub(crate) enum PassError {
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error(transparent)]
    Live(#[from] ClusterError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error("the pass took longer than {} s", PASS_MAX.as_secs())]
    TooLong,
}

impl PassError {
    /// Whether the bundle is at fault, and not the cluster.
    pub(crate) fn is_of_the_bundle(&self) -> bool {
        match self {
            Self::Observe(ObserveError::Bundle(_) | ObserveError::Unplaced(_)) | Self::Refused(_) => true,
            Self::Act(error) => matches!(error, ActError::Invalid(_)),
            Self::Observe(ObserveError::Cluster(_)) | Self::Inventory(_) | Self::Live(_) | Self::TooLong => false,
        }
    }

    /// Whether the cluster was asked to change something and did not.
    pub(crate) fn is_of_a_write(&self) -> bool {
        matches!(self, Self::Act(_))
    }
}

impl Agent {
    /// One pass of one stack. The caller reports.
    pub(crate) async fn pass(&self, turn: Turn<'_>, stack: &mut StackMemory) -> Result<Passed, PassError> {
        self.read(turn, stack).await?;
        let (Some(inventory), Some((desired, _))) = (&mut stack.inventory, &stack.desired) else {
            unreachable!("both were just read")
        };
        let live = observe::live(&self.cluster, turn.watches, desired, inventory).await?;
        let (settled, claims, drift) = (stack.settled.as_ref(), turn.claims, turn.policy.drift);
        let mut plan = match plan(desired, Observed { inventory, live: &live, settled, claims, drift }) {
            Ok(plan) => plan,
            Err(Refusal::BeingDeleted(leaving)) => return Ok(Passed { leaving, ..Passed::default() }),
            Err(refused) => return Err(refused.into()),
        };
        let (mut held, mut approved) = (None, None);
        match self.hold_back(turn, desired, inventory, &live, &plan).await {
            Verdict::Free => {}
            Verdict::Approved(strangers) => approved = Some(strangers),
            Verdict::Held { holds, back } => {
                if holds.iter().any(|hold| hold.key().is_none()) {
                    return Ok(Passed { held: Some(back), drifted: plan.drifted, ..Passed::default() });
                }
                plan.deletes.retain(|delete| holds.iter().all(|hold| hold.key() != Some(&delete.entry.key)));
                held = Some(back);
            }
        }
        announce(desired, &plan);
        observe::keep_ignored(&self.cluster, &mut plan.writes).await?;
        // Until the pass is over nothing is settled: whatever happens, the next one looks again.
        let before = stack.settled.take();
        let (cluster, position) = (&self.cluster, desired.position);
        let guard = turn.policy.brake.is_on.then(|| approved.unwrap_or_default());
        let mut executor = Executor { cluster, stack: desired.stack, inventory, position, guard };
        let done = match executor.carry_out(&plan).await {
            Ok(done) => done,
            Err(error) => {
                // The cluster may hold more of the inventory than we know of: read it again.
                stack.inventory = None;
                return Err(error.into());
            }
        };
        // What the watches have not heard of yet is no drift.
        turn.watches.learn(done.applied.values().map(|applied| &applied.live));
        let drifted = plan.drifted.into_iter().chain(done.drifted).collect();
        let present = present(desired, &live, &done.applied);
        match &desired.goal {
            Goal::Present(_) => stack.settled = Some(settle(desired, before, &live, done.applied)),
            Goal::Removed if done.leaving.is_empty() && held.is_none() => {
                inventory::discard(&self.cluster, desired.stack, inventory).await?;
                *inventory = Inventory::default();
            }
            Goal::Removed => {}
        }
        let rewritten = stack.settled.iter().flat_map(rewritten).collect();
        Ok(Passed { leaving: done.leaving, drifted, held, present, rewritten })
    }

    /// Reads what is ours and what is wanted, unless both are known.
    async fn read(&self, turn: Turn<'_>, stack: &mut StackMemory) -> Result<(), PassError> {
        let (object, ignore) = (turn.revision, &turn.policy.ignore);
        if stack.inventory.is_none() {
            stack.inventory = Some(self.known_of(object).await?);
        }
        let is_read =
            stack.desired.as_ref().is_some_and(|(desired, read)| desired.revision == object.id && read == ignore);
        if !is_read {
            // Of the epoch in which it was submitted: what a restored database still has is no newer for that.
            let position = Position { epoch: object.sequence_id.epoch(), sequence: object.sequence_id };
            let bundle = object.bundle().map_err(ObserveError::Bundle)?;
            let desired = observe::desired(&self.cluster, object, bundle, position, ignore).await?;
            stack.desired = Some((desired, ignore.clone()));
        }
        Ok(())
    }

    /// What the cluster says is ours of a stack. For a removal, an inventory that is empty is not believed.
    async fn known_of(&self, object: &DeploymentObject) -> Result<Inventory, PassError> {
        let mut known = inventory::load(&self.cluster, object.stack_id).await?;
        if object.is_deletion_marker && known.is_empty() {
            observe::sweep(&self.cluster, object.stack_id).await?.into_iter().for_each(|entry| known.put(entry));
        }
        Ok(known)
    }

    /// What of a plan waits for an approval.
    pub(crate) async fn holds(
        &self,
        desired: &Desired,
        inventory: &Inventory,
        plan: &Plan,
        policy: &Policy,
    ) -> Vec<Hold> {
        let mut found = Strangers::new();
        let takes_along = |key: &ObjectKey| Stage::of(key).comes_before_validation();
        for delete in plan.deletes.iter().filter(|delete| policy.brake.is_on && takes_along(&delete.entry.key)) {
            // What cannot be seen now is looked at again before the delete, which then fails.
            if let Ok(strangers) = strangers(&self.cluster, inventory, delete).await {
                found.insert(delete.entry.key.clone(), strangers);
            }
        }
        holds(plan, inventory, &desired.goal, &found, &policy.brake)
    }

    /// Finds out whether the plan may be carried out.
    async fn hold_back(
        &self,
        turn: Turn<'_>,
        desired: &Desired,
        inventory: &Inventory,
        live: &LiveSet,
        plan: &Plan,
    ) -> Verdict {
        let holds = self.holds(desired, inventory, plan, turn.policy).await;
        if holds.is_empty() {
            return Verdict::Free;
        }
        let shown = plan.shown(inventory, live, &holds);
        approval::ask(&self.broker, turn.agent, desired, holds, &shown).await
    }
}

fn announce(desired: &Desired, plan: &Plan) {
    if desired.goal == Goal::Removed || !plan.is_empty() {
        let (stack, sequence) = (desired.stack, desired.position.sequence);
        let (writes, deletes) = (plan.writes.len(), plan.deletes.len());
        tracing::info!("stack {stack} at sequence {sequence}: {writes} to apply, {deletes} to delete");
    }
}

/// Which version of each declared object is there now.
fn present(desired: &Desired, live: &LiveSet, applied: &BTreeMap<Arc<ObjectKey>, Applied>) -> Vec<Present> {
    let objects = match &desired.goal {
        Goal::Present(objects) => objects.as_slice(),
        Goal::Removed => &[],
    };
    let there = objects.iter().filter_map(|object| {
        let (version, assessed) = match (applied.get(&object.key), live.get(&object.key)) {
            (Some(applied), _) => (applied.live.version.clone(), Some(applied.assessed.clone())),
            (None, Some(live)) => (live.version.clone(), None),
            (None, None) => return None,
        };
        Some(Present { object: object.clone(), version, assessed })
    });
    there.collect()
}

/// Where what is in place is not what was applied.
fn rewritten(settled: &Settled) -> impl Iterator<Item = (Arc<ObjectKey>, String)> {
    settled.objects.iter().filter_map(|(key, applied)| Some((key.clone(), applied.rewritten.clone()?)))
}

/// What is in place now: what was written in this pass, and what was found settled.
fn settle(
    desired: &Desired,
    before: Option<Settled>,
    live: &LiveSet,
    applied: BTreeMap<Arc<ObjectKey>, Applied>,
) -> Settled {
    let mut objects =
        before.filter(|before| before.revision == desired.revision).map_or_else(BTreeMap::new, |before| before.objects);
    objects.retain(|key, _| live.contains_key(key));
    objects.extend(applied);
    Settled { revision: desired.revision, objects }
}
