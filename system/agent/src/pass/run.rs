//! Runs one pass of one stack: observe, plan, act. The caller reports the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use sindri_client::Client;
use sindri_model::policy::DriftMode;
use sindri_model::{AgentId, ObjectKey};

use super::act::{ActError, Executor};
use super::approval::{ApprovalDecision, HoldMessage, PLAN_BYTES_MAX, request_approval};
use super::cache::PassCache;
use super::content::ContentSearch;
use super::desired::{DesiredObject, DesiredStack, Goal};
use super::former_stacks::FormerStacks;
use super::ignored_values::copy_ignored_fields;
use super::inventory::{
    Completeness, Entry, Inventory, InventoryError, RevisionPosition, delete_inventory, load_inventory,
};
use super::observe::{LiveSet, Observation, UnreadableKinds, is_provably_of, read_live_objects};
use super::plan::{
    AppliedState, ForeignObjects, Hold, Plan, PlanInputs, find_adoption, find_done, find_excess, find_single_holds,
    make_plan, render_plan,
};
use super::recovery::InventoryReader;
use super::resolve::{ResolveError, resolve_bundle};
use super::stage::{DeleteOrder, Stage};
use super::summary::{ClaimedObject, PassError, PassSummary, SeenObject, SeenState, Waiting};
use crate::cluster::reflector::Reflector;
use crate::cluster::{AppliedObject, Cluster, LiveObject};
use crate::target::instruction::Instruction;
use crate::target::policy::EffectivePolicy;
use crate::target::revision::Revision;

/// Passes of a removal that may fail because nothing could be searched. Its objects in the inventory are gone, and the inventory
/// may well be complete.
const FAILED_SEARCHES_MAX: u32 = 20;

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
    /// Stacks that had objects before the first inventory.
    pub former_stacks: &'a FormerStacks,
    /// Id of the agent.
    pub agent: AgentId,
    /// Revision or removal to apply.
    pub revision: &'a Revision,
    /// Instruction to apply it.
    pub instruction: &'a Instruction<'a>,
    /// Policy of the stack.
    pub policy: &'a EffectivePolicy,
    /// Names of the stacks that this one depends on, and that are not ready.
    pub unready_dependencies: &'a [String],
    /// True if the broker knows that this revision was completely applied; `None` if its records could not be read.
    pub is_reported: Option<bool>,
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
        cache.is_inventory_doubtful = unreadable.has_not_served();
        let unknown = find_unknown_objects(desired, inventory, &live);
        // Without the broker nothing is deleted, and the search can wait.
        if !unknown.is_empty() && !self.revision.is_from_copy() {
            if cache.is_searched {
                // They were not found then, for example because another client has given their annotations back since.
                if let Err(error) = self.inventory_reader().add(inventory, unknown).await {
                    cache.inventory = None;
                    return Err(error.into());
                }
            } else {
                // Another agent of this stack may have had the inventory, or an older one was restored: there may be more.
                (cache.inventory, cache.had_inventory, cache.is_restored) = (None, true, true);
                return Box::pin(self.run(cache)).await;
            }
        }
        let last_applied = cache.last_applied.as_ref();
        let EffectivePolicy { drift, is_suspended, releases_on_removal, .. } = *self.policy;
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
            is_impersonated: self.policy.service_account.is_some(),
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
            return Ok(PassSummary {
                is_suspended,
                was_applied,
                drifted,
                declared,
                declares_nothing: desired.goal.declares_nothing(),
                unreadable,
                ..PassSummary::default()
            });
        }
        let mut approval = ApprovalDecision::NotNeeded;
        let excess = find_excess(&plan, inputs, desired, &self.policy.brake);
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
                let objects: Vec<_> = plan.all_deletes().cloned().collect();
                plan.inventory_ahead.approve_deletes(desired.revision, &objects);
            }
        }
        log_plan(desired, &plan, &claims.name(desired.stack));
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
        cache.released.extend(released);
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
            if !cache.is_searched && inventory.is_empty() {
                let is_any = match self.inventory_reader().find_forgotten(inventory).await {
                    Err(PassError::Observe(error)) if cache.failed_searches < FAILED_SEARCHES_MAX => {
                        cache.failed_searches += 1;
                        return Err(PassError::LastSearch(error));
                    }
                    Err(PassError::Observe(error)) => {
                        let stack = desired.stack;
                        tracing::error!("stack {stack}: its removal is confirmed without a last search: {error}");
                        false
                    }
                    searched => searched?,
                };
                cache.is_searched = true;
                if is_any {
                    return Box::pin(self.run(cache)).await;
                }
            }
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
        let claimed = plan.claimed.iter().filter_map(|key| self.describe_claimed(key)).collect();
        let unreadable = unreadable.into_errors();
        let waiting = plan.waiting.map(Waiting::Turn);
        Ok(PassSummary {
            terminating,
            claimed,
            drifted,
            held,
            declared,
            declares_nothing: desired.goal.declares_nothing(),
            rewritten_fields,
            released: cache.released.clone(),
            is_suspended,
            was_applied: false,
            unreadable,
            waiting,
        })
    }

    /// Describes an object that another stack declares; `None` if it does not any more.
    fn describe_claimed(&self, key: &Arc<ObjectKey>) -> Option<ClaimedObject> {
        let claims = self.instruction.claims();
        let claimant = claims.other_claimant(self.revision.stack_id, key)?;
        let (stack, is_suspended) = (claims.name(claimant), claims.is_suspended(claimant));
        Some(ClaimedObject { key: key.clone(), stack, is_suspended })
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
        let reader = self.inventory_reader();
        if std::mem::take(&mut cache.is_inventory_doubtful) {
            cache.doubted = cache.inventory.take();
        }
        let must_exist = cache.had_inventory || self.revision.is_deletion_marker;
        let read = match cache.inventory {
            None => Some(reader.read(cache.is_restored, must_exist, cache.doubted.as_ref()).await?),
            Some(_) => None,
        };
        let resolved = self.resolve(cache).await;
        if let Some(read) = read {
            if self.is_reported.is_none() && read.may_be_applied() && !self.revision.is_deletion_marker {
                return Err(PassError::LostInventory);
            }
            cache.is_searched = read.is_searched;
            let applied = cache.desired.as_ref().map(|(desired, _)| desired);
            let applied =
                applied.filter(|desired| self.is_reported == Some(true) && desired.revision == self.revision.id);
            cache.inventory = Some(reader.store(read, applied).await?);
            cache.doubted = None;
            (cache.had_inventory, cache.is_restored) = (true, false);
        }
        resolved
    }

    /// Resolves the bundle, unless the result is cached.
    async fn resolve(&self, cache: &mut PassCache) -> Result<(), PassError> {
        let (revision, ignore) = (self.revision, &self.policy.ignore);
        let is_resolved = cache
            .desired
            .as_ref()
            .is_some_and(|(desired, resolved_with)| desired.revision == revision.id && resolved_with == ignore);
        if !is_resolved {
            let bundle = revision.take_bundle().map_err(ResolveError::Bundle)?;
            let desired = resolve_bundle(self.cluster, revision, bundle, ignore).await?;
            if cache.desired.as_ref().is_none_or(|(before, _)| before.revision != revision.id) {
                // Objects may have been written since the last search.
                (cache.is_searched, cache.released) = (false, Vec::new());
            }
            // With other ignored fields every object is applied again.
            cache.last_applied = None;
            cache.desired = Some((desired, ignore.clone()));
        }
        Ok(())
    }

    fn inventory_reader(&self) -> InventoryReader<'_> {
        let Self { cluster, broker, former_stacks, agent, revision, instruction, .. } = *self;
        InventoryReader { cluster, broker, former_stacks, agent, stack: revision.stack_id, instruction }
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
        let plan_text = render_plan(plan, inventory, live, &holds, PLAN_BYTES_MAX);
        request_approval(self.broker, self.agent, desired, holds, plan_text).await
    }
}

/// Returns entries for the objects that prove to belong to the stack, and that the inventory does not have.
fn find_unknown_objects(desired: &DesiredStack, inventory: &Inventory, live: &LiveSet) -> Vec<Entry> {
    let is_unknown =
        |object: &&LiveObject| inventory.get(&object.key).is_none() && is_provably_of(desired.stack, object);
    live.values().filter(is_unknown).map(Entry::from_live).collect()
}

/// Removes the deletes that wait for an approval from a plan. Returns the message about them, and the foreign objects whose
/// deletion is approved.
fn hold_deletes(plan: &mut Plan, approval: ApprovalDecision) -> (Option<HoldMessage>, ForeignObjects) {
    match approval {
        ApprovalDecision::NotNeeded => (None, ForeignObjects::new()),
        ApprovalDecision::Approved(foreign) => (None, foreign),
        ApprovalDecision::Held { holds, message } => {
            plan.deletes.retain(|delete| holds.iter().all(|hold| hold.key() != Some(&delete.entry.key)));
            // The ServiceAccount of the stack needs its permissions for what waits.
            plan.deletes.retain(|delete| delete.order != DeleteOrder::Permissions);
            if holds.iter().filter_map(Hold::key).any(|key| Stage::from_key(key) == Stage::Crds) {
                // The operator of a CRD that is kept is kept too, with everything that it may need.
                plan.deletes.retain(|delete| delete.order == DeleteOrder::CustomResource);
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

fn log_plan(desired: &DesiredStack, plan: &Plan, stack: &str) {
    if desired.goal == Goal::Removed || !plan.is_empty() {
        let sequence = desired.position.sequence;
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
) -> Vec<SeenObject> {
    let present =
        |live: &LiveObject, health| SeenState::Present { resource_version: live.resource_version.clone(), health };
    let state = |object: &DesiredObject| match (applied.get(&object.key), live.get(&object.key)) {
        (Some(applied), _) => present(&applied.live, Some(applied.health.clone())),
        (None, Some(live)) => present(live, None),
        (None, None) if unreadable.contains(&object.key) => SeenState::Unread,
        (None, None) => match find_done(object, inventory, live, unreadable) {
            Some(creation) => SeenState::Done(creation.result.clone()),
            None => SeenState::Missing,
        },
    };
    let objects = desired.goal.objects().iter();
    objects.map(|object| SeenObject { object: object.clone(), state: state(object) }).collect()
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
