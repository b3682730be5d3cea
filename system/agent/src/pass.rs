//! One pass of one stack: observe, plan, act.

use std::collections::BTreeMap;

use sindri_model::ObjectKey;
use sindri_model::wire::DeploymentObject;
use thiserror::Error;

use crate::act::{ActError, Executor};
use crate::agent::Agent;
use crate::cluster::{Applied, ClusterError};
use crate::inventory::{self, Inventory, InventoryError, Position};
use crate::observe::{self, Desired, Goal, LiveSet, ObserveError};
use crate::plan::{Refusal, Settled, plan};
use crate::watches::Watches;

/// What a pass leaves for the next one. All of it can be lost: a fresh process finds it again.
#[derive(Default)]
pub(crate) struct StackMemory {
    /// As it is in the cluster; `None` until it was read.
    inventory: Option<Inventory>,
    settled: Option<Settled>,
    /// The bundle of the target, read and placed.
    desired: Option<Desired>,
}

/// A pass that was carried out.
pub(crate) struct Passed {
    /// How many objects it wrote or deleted.
    pub writes: usize,
    /// These are being deleted, and nothing more can be done until they are gone.
    pub leaving: Vec<ObjectKey>,
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
}

impl Agent {
    /// One pass of one stack. The caller reports.
    pub(crate) async fn pass(
        &self,
        object: &DeploymentObject,
        stack: &mut StackMemory,
        watches: &Watches,
    ) -> Result<Passed, PassError> {
        if stack.inventory.is_none() {
            stack.inventory = Some(self.known_of(object).await?);
        }
        if stack.desired.as_ref().is_none_or(|desired| desired.revision != object.id) {
            // Of the epoch in which it was submitted: what a restored database still has is no newer for that.
            let position = Position { epoch: object.sequence_id.epoch(), sequence: object.sequence_id };
            stack.desired = Some(observe::desired(&self.cluster, object, position).await?);
        }
        let (Some(inventory), Some(desired)) = (&mut stack.inventory, &stack.desired) else {
            unreachable!("both were filled in above")
        };
        let live = observe::live(&self.cluster, watches, desired, inventory).await?;
        let plan = match plan(desired, inventory, &live, stack.settled.as_ref()) {
            Ok(plan) => plan,
            Err(Refusal::BeingDeleted(leaving)) => return Ok(Passed { writes: 0, leaving }),
            Err(refused) => return Err(refused.into()),
        };
        let writes = plan.writes.len() + plan.deletes.len();
        if desired.goal == Goal::Removed || !plan.is_empty() {
            tracing::info!(
                "stack {} at sequence {}: {} to apply, {} to delete",
                desired.stack,
                desired.position.sequence,
                plan.writes.len(),
                plan.deletes.len()
            );
        }
        // Until the pass is over nothing is settled: whatever happens, the next one looks again.
        let before = stack.settled.take();
        let mut executor = Executor { cluster: &self.cluster, stack: desired.stack, inventory };
        let done = match executor.carry_out(&plan).await {
            Ok(done) => done,
            Err(error) => {
                // The cluster may hold more of the inventory than we know of: read it again.
                stack.inventory = None;
                return Err(error.into());
            }
        };
        if done.leaving.is_empty() {
            match &desired.goal {
                Goal::Present(_) => stack.settled = Some(settle(desired, before, &live, done.applied)),
                Goal::Removed => {
                    inventory::discard(&self.cluster, desired.stack, inventory).await?;
                    *inventory = Inventory::default();
                }
            }
        }
        Ok(Passed { writes, leaving: done.leaving })
    }

    /// What the cluster says is ours of a stack. For a removal, an inventory that is empty is not believed.
    async fn known_of(&self, object: &DeploymentObject) -> Result<Inventory, PassError> {
        let mut known = inventory::load(&self.cluster, object.stack_id).await?;
        if object.is_deletion_marker && known.is_empty() {
            observe::sweep(&self.cluster, object.stack_id).await?.into_iter().for_each(|entry| known.put(entry));
        }
        Ok(known)
    }
}

/// What is in place now: what was written in this pass, and what was found settled.
fn settle(
    desired: &Desired,
    before: Option<Settled>,
    live: &LiveSet,
    applied: BTreeMap<ObjectKey, Applied>,
) -> Settled {
    let mut objects =
        before.filter(|before| before.revision == desired.revision).map_or_else(BTreeMap::new, |before| before.objects);
    objects.retain(|key, _| live.contains_key(key));
    objects.extend(applied);
    Settled { revision: desired.revision, objects }
}
