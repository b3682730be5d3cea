//! Runs one pass of one stack: observe, plan, act. The caller reports the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use sindri_client::Client;
use sindri_model::wire::DeploymentObject;
use sindri_model::{AgentId, ObjectKey};

use super::act::Executor;
use super::approval::{ApprovalDecision, request_approval};
use super::desired::{DesiredStack, Goal};
use super::foreign_objects::search_holds;
use super::ignored_values::copy_ignored_fields;
use super::inventory::{Inventory, delete_inventory, load_inventory};
use super::observe::{LiveSet, find_stack_objects, read_live_objects};
use super::plan::{AppliedState, Plan, PlanError, PlanInputs, make_plan, render_plan};
use super::resolve::{ResolveError, resolve_bundle};
use super::summary::{PassError, PassSummary, PresentObject};
use crate::cluster::reflector::Reflector;
use crate::cluster::{AppliedObject, Cluster};
use crate::target::claims::Claims;
use crate::target::policy::StackPolicy;
use crate::target::revision::Revision;

/// Cached state of a stack between passes. It may be lost: a pass without it reads everything again.
#[derive(Default)]
pub struct PassCache {
    /// Inventory as it is in the cluster; `None` until it was read.
    inventory: Option<Inventory>,
    /// Result of the last pass.
    last_applied: Option<AppliedState>,
    /// Resolved bundle, and the ignored fields of the policy with which it was resolved.
    desired: Option<(DesiredStack, String)>,
}

impl PassCache {
    /// Returns the number of objects in the inventory, if it is known.
    pub fn managed_objects(&self) -> Option<usize> {
        self.inventory.as_ref().map(|inventory| inventory.entries().count())
    }
}

/// One pass of one stack.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Client of the broker, for approvals.
    pub broker: &'a Client,
    /// Labelled objects of the cluster.
    pub reflector: &'a Reflector,
    /// Id of the agent.
    pub agent: AgentId,
    /// Revision or removal to apply.
    pub revision: &'a Revision,
    /// Claims of all stacks.
    pub claims: &'a Claims,
    /// Policy of the stack.
    pub policy: &'a StackPolicy,
}

impl Pass<'_> {
    /// Runs the pass.
    pub async fn run(&self, cache: &mut PassCache) -> Result<PassSummary, PassError> {
        self.fill_cache(cache).await?;
        let (Some(inventory), Some((desired, _))) = (&mut cache.inventory, &cache.desired) else {
            unreachable!("both were just read")
        };
        let live = read_live_objects(self.cluster, self.reflector, desired, inventory).await?;
        let last_applied = cache.last_applied.as_ref();
        let inputs = PlanInputs { inventory, live: &live, last_applied, claims: self.claims, drift: self.policy.drift };
        let mut plan = match make_plan(desired, inputs) {
            Ok(plan) => plan,
            Err(PlanError::Terminating(terminating)) => {
                return Ok(PassSummary { terminating, ..PassSummary::default() });
            }
            Err(error) => return Err(error.into()),
        };
        let (mut held, mut approved) = (None, None);
        match self.decide_approval(desired, inventory, &live, &plan).await {
            ApprovalDecision::NotNeeded => {}
            ApprovalDecision::Approved(foreign) => approved = Some(foreign),
            ApprovalDecision::Held { holds, message } => {
                if holds.iter().any(|hold| hold.key().is_none()) {
                    return Ok(PassSummary { held: Some(message), drifted: plan.drifted, ..PassSummary::default() });
                }
                plan.deletes.retain(|delete| holds.iter().all(|hold| hold.key() != Some(&delete.entry.key)));
                held = Some(message);
            }
        }
        log_plan(desired, &plan);
        copy_ignored_fields(self.cluster, &mut plan.writes).await?;
        // Cleared until the pass has ended, so that the next pass looks at every object if this one fails.
        let before = cache.last_applied.take();
        let (cluster, stack, position) = (self.cluster, desired.stack, desired.position);
        let approved = self.policy.brake.is_on.then(|| approved.unwrap_or_default());
        let mut executor = Executor { cluster, stack, inventory, position, approved };
        let result = match executor.execute(&plan).await {
            Ok(result) => result,
            Err(error) => {
                // The inventory in the cluster may be newer than the cached one.
                cache.inventory = None;
                return Err(error.into());
            }
        };
        // A write that the watches have not reported yet must not look like drift.
        self.reflector.add_written(result.applied.values().map(|applied| &applied.live));
        let drifted = plan.drifted.into_iter().chain(result.drifted).collect();
        let present = find_present(desired, &live, &result.applied);
        match &desired.goal {
            Goal::Present(_) => cache.last_applied = Some(merge_applied(desired, before, &live, result.applied)),
            Goal::Removed if result.terminating.is_empty() && held.is_none() => {
                delete_inventory(self.cluster, desired.stack, inventory).await?;
                *inventory = Inventory::default();
            }
            Goal::Removed => {}
        }
        let rewritten_fields = cache.last_applied.iter().flat_map(rewritten_fields).collect();
        Ok(PassSummary { terminating: result.terminating, drifted, held, present, rewritten_fields })
    }

    /// Reads the inventory and resolves the bundle, unless both are cached.
    async fn fill_cache(&self, cache: &mut PassCache) -> Result<(), PassError> {
        let (revision, ignore) = (self.revision, &self.policy.ignore);
        if cache.inventory.is_none() {
            cache.inventory = Some(read_inventory(self.cluster, revision).await?);
        }
        let is_resolved = cache
            .desired
            .as_ref()
            .is_some_and(|(desired, resolved_with)| desired.revision == revision.id && resolved_with == ignore);
        if !is_resolved {
            let bundle = revision.take_bundle().map_err(ResolveError::Bundle)?;
            let desired = resolve_bundle(self.cluster, revision, bundle, ignore).await?;
            cache.desired = Some((desired, ignore.clone()));
        }
        Ok(())
    }

    /// Searches for deletions that must wait, and asks for their approval.
    async fn decide_approval(
        &self,
        desired: &DesiredStack,
        inventory: &Inventory,
        live: &LiveSet,
        plan: &Plan,
    ) -> ApprovalDecision {
        let holds = search_holds(self.cluster, desired, inventory, plan, &self.policy.brake).await;
        if holds.is_empty() {
            return ApprovalDecision::NotNeeded;
        }
        let plan_text = render_plan(plan, inventory, live, &holds);
        request_approval(self.broker, self.agent, desired, holds, &plan_text).await
    }
}

/// Reads the inventory of a stack. For a removal, an empty inventory is checked by a search of the cluster.
async fn read_inventory(cluster: &Cluster, revision: &DeploymentObject) -> Result<Inventory, PassError> {
    let mut inventory = load_inventory(cluster, revision.stack_id).await?;
    if revision.is_deletion_marker && inventory.is_empty() {
        let entries = find_stack_objects(cluster, revision.stack_id).await?;
        entries.into_iter().for_each(|entry| inventory.insert(entry));
    }
    Ok(inventory)
}

fn log_plan(desired: &DesiredStack, plan: &Plan) {
    if desired.goal == Goal::Removed || !plan.is_empty() {
        let (stack, sequence) = (desired.stack, desired.position.sequence);
        let (writes, deletes) = (plan.writes.len(), plan.deletes.len());
        tracing::info!("stack {stack} at sequence {sequence}: {writes} to apply, {deletes} to delete");
    }
}

/// Returns the declared objects that exist now, with their resourceVersions.
fn find_present(
    desired: &DesiredStack,
    live: &LiveSet,
    applied: &BTreeMap<Arc<ObjectKey>, AppliedObject>,
) -> Vec<PresentObject> {
    let present = desired.goal.objects().iter().filter_map(|object| {
        let (resource_version, health) = match (applied.get(&object.key), live.get(&object.key)) {
            (Some(applied), _) => (applied.live.resource_version.clone(), Some(applied.health.clone())),
            (None, Some(live)) => (live.resource_version.clone(), None),
            (None, None) => return None,
        };
        Some(PresentObject { object: object.clone(), resource_version, health })
    });
    present.collect()
}

fn rewritten_fields(applied: &AppliedState) -> impl Iterator<Item = (Arc<ObjectKey>, String)> {
    applied.objects.iter().filter_map(|(key, applied)| Some((key.clone(), applied.rewritten_field.clone()?)))
}

/// Adds the objects that this pass applied to those of earlier passes of the same revision that still exist.
fn merge_applied(
    desired: &DesiredStack,
    before: Option<AppliedState>,
    live: &LiveSet,
    applied: BTreeMap<Arc<ObjectKey>, AppliedObject>,
) -> AppliedState {
    let before = before.filter(|before| before.revision == desired.revision);
    let mut objects = before.map_or_else(BTreeMap::new, |before| before.objects);
    objects.retain(|key, _| live.contains_key(key));
    objects.extend(applied);
    AppliedState { revision: desired.revision, objects }
}
