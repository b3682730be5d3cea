//! Runs one pass of one stack: observe, plan, act. The caller reports the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use sindri_client::Client;
use sindri_model::policy::DriftMode;
use sindri_model::{AgentId, ObjectKey, StackId};

use super::act::{ActError, Executor};
use super::approval::{ApprovalDecision, HoldMessage, request_approval};
use super::content::ContentSearch;
use super::desired::{DesiredObject, DesiredStack, Goal};
use super::ignored_values::copy_ignored_fields;
use super::inventory::{
    Completeness, Inventory, InventoryError, RevisionPosition, delete_inventory, load_inventory, rewrite_inventory,
    save_inventory,
};
use super::observe::{LiveSet, Observation, UnreadableKinds, find_stack_objects, read_live_objects};
use super::order::ReadyObjects;
use super::plan::{
    AppliedState, ForeignObjects, Hold, Plan, PlanInputs, find_adoption, find_done, find_excess, find_single_holds,
    make_plan, render_plan,
};
use super::resolve::{ResolveError, resolve_bundle};
use super::stage::{DeleteOrder, Stage};
use super::summary::{DeclaredObject, DeclaredState, PassError, PassSummary, Waiting};
use crate::cluster::reflector::Reflector;
use crate::cluster::{ApiResource, AppliedObject, Cluster, LiveObject};
use crate::target::instruction::Instruction;
use crate::target::policy::StackPolicy;
use crate::target::revision::Revision;

/// Cached state of a stack between passes. It may be lost: a pass without it reads everything again.
#[derive(Default)]
pub struct PassCache {
    /// Inventory as it is in the cluster; `None` until it was read.
    inventory: Option<Inventory>,
    /// True if this process has read an inventory of the stack before.
    had_inventory: bool,
    /// Number of restores of etcd that are reflected in the cached state.
    restores: u64,
    /// True if etcd was restored since the inventory was read, or the inventory lacks objects.
    is_restored: bool,
    /// True if objects were searched that the inventory lacks.
    is_searched: bool,
    /// Result of the last pass.
    last_applied: Option<AppliedState>,
    /// Objects that were ready after the last pass, while others wait for them.
    pub ready: ReadyObjects,
    /// Resolved bundle, and the ignored fields of the policy with which it was resolved.
    desired: Option<(DesiredStack, String)>,
}

impl PassCache {
    /// Returns the resource type and the UID of an object of the stack, if they are known.
    pub fn find_object(&self, key: &ObjectKey) -> Option<(&ApiResource, Option<&str>)> {
        let entry = self.inventory.as_ref().and_then(|inventory| inventory.get(key));
        let declared = || self.desired.as_ref()?.0.goal.objects().iter().find(|object| *object.key == *key);
        let resource = entry.map(|entry| &entry.resource).or_else(|| Some(&declared()?.resource))?;
        Some((resource, entry.and_then(|entry| entry.uid.as_deref())))
    }

    /// Stores the failures of objects that are applied once; `find` returns `None` for objects that are gone.
    pub async fn save_failures(
        &mut self,
        cluster: &Cluster,
        stack: StackId,
        find: impl Fn(&ObjectKey) -> Option<Result<(), String>>,
    ) -> Result<(), InventoryError> {
        let Some(before) = self.inventory.take_if(|inventory| inventory.has_once()) else { return Ok(()) };
        let mut after = before.clone();
        after.set_failures(find);
        after.versions = save_inventory(cluster, stack, &before, &after).await?;
        self.inventory = Some(after);
        Ok(())
    }

    /// Returns the number of objects in the inventory, if it is known.
    pub fn managed_objects(&self) -> Option<usize> {
        self.inventory.as_ref().map(|inventory| inventory.entries().count())
    }
}

/// One pass of one stack.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// Client of the cluster, which does not retry any more once a newer revision waits.
    pub cluster: &'a Cluster,
    /// The same client for writes, as the ServiceAccount of the stack if it has one.
    pub write_cluster: &'a Cluster,
    /// Client of the broker, for approvals.
    pub broker: &'a Client,
    /// Labelled objects of the cluster.
    pub reflector: &'a Reflector,
    /// Id of the agent.
    pub agent: AgentId,
    /// Revision or removal to apply.
    pub revision: &'a Revision,
    /// Instruction to apply it.
    pub instruction: &'a Instruction<'a>,
    /// Policy of the stack.
    pub policy: &'a StackPolicy,
    /// Names of the stacks that this one depends on, and that are not ready.
    pub unready_dependencies: &'a [String],
}

impl Pass<'_> {
    /// Runs the pass.
    pub async fn run(&self, cache: &mut PassCache) -> Result<PassSummary, PassError> {
        let restores = self.reflector.restores();
        if cache.restores != restores {
            let (had_inventory, is_restored) = (cache.had_inventory, cache.is_restored || cache.had_inventory);
            *cache = PassCache { had_inventory, restores, is_restored, ..PassCache::default() };
        }
        if self.revision.is_from_copy() {
            self.check_is_applied(cache).await?;
        }
        self.fill_cache(cache).await?;
        let (Some(inventory), Some((desired, _))) = (&mut cache.inventory, &cache.desired) else {
            unreachable!("both were just read")
        };
        if let Some(waiting) = self.find_unready_dependencies(desired, inventory) {
            return Ok(PassSummary { waiting: Some(waiting), ..PassSummary::default() });
        }
        let Observation { live, unreadable } =
            read_live_objects(self.cluster, self.reflector, desired, inventory).await;
        if !cache.is_searched && has_unknown_objects(desired, inventory, &live) {
            // Another agent of this stack may have had the inventory, or an older one was restored: there may be more objects.
            (cache.inventory, cache.had_inventory, cache.is_restored, cache.is_searched) = (None, true, true, true);
            return Box::pin(self.run(cache)).await;
        }
        let last_applied = cache.last_applied.as_ref();
        let StackPolicy { drift, is_suspended, releases_on_removal, .. } = *self.policy;
        // The drift of a suspended stack is reported, and not corrected.
        let drift = if is_suspended && drift == DriftMode::Correct { DriftMode::Detect } else { drift };
        let (claims, releases_all) = (&*self.instruction.claims(), releases_on_removal);
        let inputs = PlanInputs {
            inventory,
            live: &live,
            unreadable: &unreadable,
            last_applied,
            claims,
            drift,
            releases_all,
            ready: Some(&cache.ready),
        };
        let mut plan = make_plan(desired, inputs)?;
        if self.revision.is_from_copy() {
            plan.deletes.clear();
            plan.releases.clear();
        }
        let executor = |inventory| Executor {
            cluster: self.write_cluster,
            inventory_cluster: self.cluster,
            stack: desired.stack,
            inventory,
            position: desired.position,
            is_present: matches!(desired.goal, Goal::Present(_)),
            instruction: self.instruction,
        };
        if is_suspended {
            let result = executor(inventory).compare(&plan).await?;
            let declared = find_declared(desired, inventory, &live, &unreadable, &result.applied);
            let drifted = plan.drifted.into_iter().chain(result.drifted).collect();
            let before = cache.last_applied.take();
            cache.last_applied = Some(merge_applied(desired, before, &live, result.applied));
            let (unreadable, was_applied) = (unreadable.into_errors(), inventory.applied == Some(desired.position));
            let summary =
                PassSummary { is_suspended, was_applied, drifted, declared, unreadable, ..PassSummary::default() };
            return Ok(summary);
        }
        let mut approval = ApprovalDecision::NotNeeded;
        let excess = find_excess(&plan, inventory, desired, &self.policy.brake);
        let has_excess = excess.is_some();
        let holds: Vec<Hold> = find_adoption(&plan).into_iter().chain(excess).collect();
        if !holds.is_empty() {
            approval = self.decide_approval(desired, inventory, &live, &plan, holds).await;
            if let ApprovalDecision::Held { message, .. } = approval {
                let unreadable = unreadable.into_errors();
                let (held, drifted) = (Some(message), plan.drifted);
                return Ok(PassSummary { held, drifted, unreadable, ..PassSummary::default() });
            }
            if has_excess {
                plan.inventory_ahead.approved = Some(desired.revision);
            }
        }
        log_plan(desired, &plan);
        copy_ignored_fields(self.cluster, &mut plan.writes).await?;
        // Cleared until the writes have ended, so that the next pass looks at every object if one fails.
        let before = cache.last_applied.take();
        let mut executor = executor(inventory);
        let mut result = match executor.write(&plan).await {
            Ok(result) => result,
            Err(error) => {
                // The inventory in the cluster may be newer than the cached one.
                cache.inventory = None;
                return Err(error.into());
            }
        };
        // A write that the watches have not reported yet must not look like drift.
        self.reflector.add_written(result.applied.values().map(|applied| &applied.live));
        let declared = find_declared(desired, executor.inventory, &live, &unreadable, &result.applied);
        if let Goal::Present(_) = &desired.goal {
            let applied = std::mem::take(&mut result.applied);
            cache.last_applied = Some(merge_applied(desired, before, &live, applied));
        }
        // Before the content of namespaces is searched: a released object in a namespace is a foreign one.
        let (released, errors) = match executor.release(&plan.releases).await {
            Ok(released) => released,
            Err(error) => {
                cache.inventory = None;
                return Err(error.into());
            }
        };
        // The content of namespaces and CRDs is searched after the writes, so that a search that takes long delays none.
        if let ApprovalDecision::NotNeeded = approval {
            approval = self.decide_approval(desired, executor.inventory, &live, &plan, Vec::new()).await;
        }
        let (held, approved) = hold_deletes(&mut plan, approval);
        let approved = self.policy.brake.is_on.then_some(&approved);
        let deleted = executor.delete(&plan, approved, errors, &mut result).await;
        if let Err(ActError::Inventory(_)) = deleted {
            cache.inventory = None;
        }
        deleted?;
        let is_complete = result.terminating.is_empty() && held.is_none() && unreadable.is_empty();
        if let (Goal::Removed, true, Some(inventory)) = (&desired.goal, is_complete, &mut cache.inventory) {
            result.terminating = match finish_removal(self.cluster, desired, inventory).await {
                Ok(terminating) => terminating,
                Err(error) => {
                    cache.inventory = None;
                    return Err(error.into());
                }
            };
        }
        let drifted = plan.drifted.into_iter().chain(result.drifted).collect();
        let rewritten_fields = cache.last_applied.iter().flat_map(rewritten_fields).collect();
        let terminating = result.terminating;
        let unreadable = unreadable.into_errors();
        let waiting = plan.waiting.map(Waiting::Turn);
        Ok(PassSummary {
            terminating,
            drifted,
            held,
            declared,
            rewritten_fields,
            released,
            is_suspended,
            was_applied: false,
            unreadable,
            waiting,
        })
    }

    /// Returns the stacks for which a revision has to wait. One that was applied here before does not wait again.
    fn find_unready_dependencies(&self, desired: &DesiredStack, inventory: &Inventory) -> Option<Waiting> {
        let is_new = desired.goal != Goal::Removed && inventory.applied != Some(desired.position);
        let names = self.unready_dependencies;
        (is_new && !names.is_empty()).then(|| Waiting::Stacks(names.to_vec()))
    }

    /// Checks that the revision was completely applied before. A newer one may have been, a held one must not be, and a
    /// removal is not begun, without the broker.
    async fn check_is_applied(&self, cache: &mut PassCache) -> Result<(), PassError> {
        let position = RevisionPosition::from_sequence(self.revision.sequence_id);
        if cache.inventory.is_none() && !self.revision.is_deletion_marker {
            let (inventory, completeness) = load_inventory(self.cluster, self.revision.stack_id).await?;
            // A part that was lost is searched for once the broker has responded.
            cache.inventory = (completeness == Completeness::Complete).then_some(inventory);
            cache.had_inventory |= cache.inventory.is_some();
        }
        let applied = cache.inventory.as_ref().and_then(|inventory| inventory.applied);
        match applied == Some(position) && !self.revision.is_deletion_marker {
            true => Ok(()),
            false => Err(PassError::WaitsForBroker(position)),
        }
    }

    /// Reads the inventory and resolves the bundle, unless both are cached.
    async fn fill_cache(&self, cache: &mut PassCache) -> Result<(), PassError> {
        let (revision, ignore) = (self.revision, &self.policy.ignore);
        if cache.inventory.is_none() {
            cache.inventory = Some(self.read_inventory(cache).await?);
            (cache.had_inventory, cache.is_restored) = (true, false);
        }
        let is_resolved = cache
            .desired
            .as_ref()
            .is_some_and(|(desired, resolved_with)| desired.revision == revision.id && resolved_with == ignore);
        if !is_resolved {
            let bundle = revision.take_bundle().map_err(ResolveError::Bundle)?;
            let desired = resolve_bundle(self.cluster, revision, bundle, ignore).await?;
            // With other ignored fields every object is applied again.
            cache.last_applied = None;
            cache.desired = Some((desired, ignore.clone()));
        }
        Ok(())
    }

    /// Reads the inventory of the stack. One that was lost, as a whole or in part, is built again from a search of the
    /// cluster, before anything is concluded from it; and so is one of before a restore of etcd: objects that were deleted
    /// since exist again.
    async fn read_inventory(&self, cache: &PassCache) -> Result<Inventory, PassError> {
        let (cluster, stack) = (self.cluster, self.revision.stack_id);
        let (mut inventory, completeness) = load_inventory(cluster, stack).await?;
        let is_lost = match completeness {
            Completeness::Complete => cache.is_restored,
            Completeness::Partial => true,
            Completeness::Missing => {
                cache.had_inventory || self.revision.is_deletion_marker || self.is_known_stack().await
            }
        };
        if is_lost {
            for entry in find_stack_objects(cluster, stack).await? {
                if inventory.get(&entry.key).is_none() {
                    inventory.insert(entry);
                }
            }
            if !inventory.is_empty() || completeness == Completeness::Partial {
                let count = inventory.entries().count();
                tracing::warn!(
                    "stack {stack}: its inventory was lost or outdated, and built again with {count} objects"
                );
                inventory.versions = rewrite_inventory(cluster, stack, &inventory).await?;
            }
        }
        Ok(inventory)
    }

    /// Returns true if this agent has reported about the stack before. Without a response it may have.
    async fn is_known_stack(&self) -> bool {
        let report = self.broker.get_reported_stack_status(self.agent, self.revision.stack_id).await;
        report.map_or(true, |report| report.is_some())
    }

    /// Searches for deletions that must wait, and asks for their approval and that of the given holds.
    async fn decide_approval(
        &self,
        desired: &DesiredStack,
        inventory: &Inventory,
        live: &LiveSet,
        plan: &Plan,
        mut holds: Vec<Hold>,
    ) -> ApprovalDecision {
        let brake = &self.policy.brake;
        let foreign = if brake.is_on {
            let (cluster, stack) = (self.cluster, desired.stack);
            let claims = || self.instruction.claims();
            ContentSearch { cluster, stack, inventory, claims: &claims }.find_all_foreign(plan).await
        } else {
            ForeignObjects::new()
        };
        holds.extend(find_single_holds(plan, &foreign, brake));
        if holds.is_empty() {
            return ApprovalDecision::NotNeeded;
        }
        let plan_text = render_plan(plan, inventory, live, &holds);
        request_approval(self.broker, self.agent, desired, holds, &plan_text).await
    }
}

/// Returns true if the inventory does not have an object that proves to belong to the stack.
fn has_unknown_objects(desired: &DesiredStack, inventory: &Inventory, live: &LiveSet) -> bool {
    let is_unknown = |object: &LiveObject| {
        inventory.get(&object.key).is_none() && object.ownership.proves_owner(desired.stack, &object.key)
    };
    live.values().any(is_unknown)
}

/// Removes the deletes that wait for an approval from a plan. Returns the message about them, and the foreign objects whose
/// deletion is approved.
fn hold_deletes(plan: &mut Plan, approval: ApprovalDecision) -> (Option<HoldMessage>, ForeignObjects) {
    match approval {
        ApprovalDecision::NotNeeded => (None, ForeignObjects::new()),
        ApprovalDecision::Approved(foreign) => (None, foreign),
        ApprovalDecision::Held { holds, message } => {
            plan.deletes.retain(|delete| holds.iter().all(|hold| hold.key() != Some(&delete.entry.key)));
            if holds.iter().filter_map(Hold::key).any(|key| Stage::from_key(key) == Stage::Crds) {
                // The operator of a CRD that is kept is kept too, with everything that it may need.
                plan.deletes.retain(|delete| DeleteOrder::from_key(&delete.entry.key) == DeleteOrder::CustomResource);
            }
            (Some(message), ForeignObjects::new())
        }
    }
}

/// Deletes the inventory of a removed stack. Returns the objects that are still in it: another stack declares them, and they
/// stay until they belong to that stack.
async fn finish_removal(
    cluster: &Cluster,
    desired: &DesiredStack,
    inventory: &mut Inventory,
) -> Result<Vec<Arc<ObjectKey>>, InventoryError> {
    if inventory.is_empty() {
        delete_inventory(cluster, desired.stack, inventory).await?;
        *inventory = Inventory::new(cluster.limits().inventory_chunk_entries);
    }
    Ok(inventory.entries().map(|entry| entry.key.clone()).collect())
}

fn log_plan(desired: &DesiredStack, plan: &Plan) {
    if desired.goal == Goal::Removed || !plan.is_empty() {
        let (stack, sequence) = (desired.stack, desired.position.sequence);
        let (writes, deletes) = (plan.writes.len(), plan.deletes.len());
        tracing::info!("stack {stack} at sequence {sequence}: {writes} to apply, {deletes} to delete");
    }
}

/// Returns the declared objects with the state of their live objects.
fn find_declared(
    desired: &DesiredStack,
    inventory: &Inventory,
    live: &LiveSet,
    unreadable: &UnreadableKinds,
    applied: &BTreeMap<Arc<ObjectKey>, AppliedObject>,
) -> Vec<DeclaredObject> {
    let present =
        |live: &LiveObject, health| DeclaredState::Present { resource_version: live.resource_version.clone(), health };
    let state = |object: &DesiredObject| match (applied.get(&object.key), live.get(&object.key)) {
        (Some(applied), _) => present(&applied.live, Some(applied.health.clone())),
        (None, Some(live)) => present(live, None),
        (None, None) if unreadable.contains(&object.key) => DeclaredState::Unread,
        (None, None) => match find_done(object, inventory, live, unreadable) {
            Some(creation) => DeclaredState::Done { failure: creation.failure.clone() },
            None => DeclaredState::Missing,
        },
    };
    let objects = desired.goal.objects().iter();
    objects.map(|object| DeclaredObject { object: object.clone(), state: state(object) }).collect()
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
