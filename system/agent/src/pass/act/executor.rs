//! Executes a plan. The plan decides what is written and in which order; the executor decides nothing.
//!
//! Writes the inventory before the objects, stops after a failed write, continues after a failed delete, and deletes the
//! namespaces that a failed pass created and that are still empty.

use std::sync::Arc;

use futures_util::TryFutureExt;
use futures_util::future::try_join;
use sindri_model::{ObjectKey, StackId};

use super::delete::Deleter;
use super::isolate::isolate;
use super::namespaces::{CreatedNamespace, NamespaceRollback};
use super::once::OnceRecorder;
use super::recheck::Recheck;
use super::result::{ActError, ActResult, DeleteError};
use super::write::{ValidationResult, Writer};
use crate::cluster::{AppliedObject, Cluster};
use crate::pass::inventory::{Inventory, RevisionPosition, save_inventory, save_inventory_with};
use crate::pass::plan::{Delete, ForeignObjects, Plan, Write};
use crate::target::instruction::Instruction;

/// Executes the plans of one stack.
pub struct Executor<'a> {
    /// Client of the cluster for the objects of the stack.
    pub cluster: &'a Cluster,
    /// Client of the cluster for the inventory, which belongs to the agent.
    pub inventory_cluster: &'a Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack, kept equal to the one in the cluster.
    pub inventory: &'a mut Inventory,
    /// Position of the revision.
    pub position: RevisionPosition,
    /// True if the revision declares objects, false if it removes the stack.
    pub is_present: bool,
    /// Instruction that the pass executes.
    pub instruction: &'a Instruction<'a>,
}

impl Executor<'_> {
    /// Makes the writes of a plan; after a failed write deletes the namespaces that it created.
    pub async fn write(&mut self, plan: &Plan) -> Result<ActResult, ActError> {
        let validation = self.prepare(plan).await?;
        let terminating = plan.terminating.iter().chain(&plan.delayed).cloned().collect();
        let mut result = ActResult { terminating, ..ActResult::default() };
        let mut created = Vec::new();
        let before = self.inventory.clone();
        let (cluster, stack, instruction) = (self.cluster, self.stack, self.instruction);
        let writer = Writer { cluster, stack, inventory: &before, instruction };
        let recorder = OnceRecorder::new(self.inventory_cluster, self.stack, self.inventory);
        if let Err(error) = writer.write_all(plan, validation, &recorder, &mut result, &mut created).await {
            // If objects were only postponed, they follow.
            let is_kept =
                |namespace: &CreatedNamespace| matches!(error, ActError::Postponed(_)) || namespace.is_used(&result);
            created.retain(|namespace| !is_kept(namespace));
            let rollback = NamespaceRollback { cluster, stack, inventory: self.inventory, instruction };
            rollback.delete(&created).await;
            let after = self.inventory_after(&result);
            // UIDs that are known by now help the next pass; a second failure would hide the first.
            let _ = self.save(after).await;
            return Err(error);
        }
        // Another client may have deleted an object that had no ownership label, and was not observed.
        let is_terminating = |applied: &&AppliedObject| applied.live.is_terminating;
        let terminating = result.applied.values().filter(is_terminating).map(|applied| applied.live.key.clone());
        let terminating: Vec<_> = terminating.collect();
        result.terminating.extend(terminating);
        let mut after = self.inventory_after(&result);
        if self.is_present && !plan.is_partial {
            // Also if nothing had to be written: the rest of the revision may have been applied by earlier passes.
            (after.applied, after.begun) = (Some(self.position), after.begun.max(Some(self.position)));
        }
        self.save(after).await?;
        self.writer().compare_all(&plan.checks, &mut result).await?;
        Ok(result)
    }

    /// Compares objects by dry runs, and writes nothing.
    pub async fn compare(&self, plan: &Plan) -> Result<ActResult, ActError> {
        let mut result = ActResult::default();
        self.writer().compare_all(&plan.checks, &mut result).await?;
        Ok(result)
    }

    /// Releases objects: they stay, and do not belong to the stack any more. Continues after failures. Returns the keys of
    /// the released ones, and the errors.
    pub async fn release(&mut self, releases: &[Delete]) -> Result<(Vec<Arc<ObjectKey>>, Vec<DeleteError>), ActError> {
        let (mut released, mut errors) = (Vec::new(), Vec::new());
        if releases.is_empty() {
            return Ok((released, errors));
        }
        let mut after = self.inventory.clone();
        let recheck = Recheck { cluster: self.cluster, stack: self.stack, instruction: self.instruction };
        for Delete { entry, uid, .. } in releases {
            let check = || async {
                let live = recheck.read(entry, uid).await?;
                recheck.check_dropped(entry)?;
                Ok(live)
            };
            match isolate("release", &entry.key, async { self.cluster.release(&entry.key, check).await? }).await {
                Ok(()) => {
                    tracing::info!("released {}", entry.key);
                    after.remove(&entry.key);
                    released.push(entry.key.clone());
                }
                Err(error) => errors.push(error),
            }
        }
        self.save(after).await?;
        Ok((released, errors))
    }

    /// Makes the deletes of a plan, after `errors` of the releases. With the brake on, `approved` holds the foreign objects
    /// whose deletion together with a namespace or CRD is approved.
    pub async fn delete(
        &mut self,
        plan: &Plan,
        approved: Option<&ForeignObjects>,
        mut errors: Vec<DeleteError>,
        result: &mut ActResult,
    ) -> Result<(), ActError> {
        let (cluster, stack, inventory) = (self.cluster, self.stack, &*self.inventory);
        // A removal of permissions by the agent itself takes them from the stack's own ServiceAccount.
        let own_cluster = (!self.is_present).then_some(self.inventory_cluster);
        let deleter = Deleter { cluster, own_cluster, stack, inventory, instruction: self.instruction, approved };
        let deleted = deleter.delete_all(&plan.deletes, &plan.terminating).await;
        result.terminating.extend(deleted.terminating);
        self.save(deleted.inventory).await?;
        errors.extend(deleted.errors);
        if errors.is_empty() { Ok(()) } else { Err(ActError::Deletes(errors)) }
    }

    /// Stores the inventory before the first write. Validation writes nothing and runs at the same time, unless namespaces
    /// or CRDs are written first. If the inventory cannot be stored, validation is cancelled.
    async fn prepare<'a>(&mut self, plan: &'a Plan) -> Result<Option<ValidationResult<'a>>, ActError> {
        // The creation of an object that is applied once is recorded after it: if that is impossible, nothing is created.
        let once: Vec<&ObjectKey> = plan.writes.iter().filter_map(Write::created_once).collect();
        let (cluster, stack, ahead) = (self.inventory_cluster, self.stack, &plan.inventory_ahead);
        let save = save_inventory_with(cluster, stack, self.inventory, ahead, &once).map_err(ActError::from);
        let writer = self.writer();
        let (versions, validation) = match plan.split_at_validation() {
            ([], rest) => {
                let (versions, validation) = try_join(save, async { Ok(writer.validate_all(rest).await) }).await?;
                (versions, Some(validation))
            }
            _ => (save.await?, None),
        };
        self.inventory.clone_from(&plan.inventory_ahead);
        self.inventory.versions = versions;
        Ok(validation)
    }

    fn writer(&self) -> Writer<'_> {
        let Self { cluster, stack, instruction, .. } = *self;
        Writer { cluster, stack, inventory: self.inventory, instruction }
    }

    async fn save(&mut self, after: Inventory) -> Result<(), ActError> {
        let versions = save_inventory(self.inventory_cluster, self.stack, self.inventory, &after).await?;
        *self.inventory = after;
        self.inventory.versions = versions;
        Ok(())
    }

    /// Returns the inventory with the UIDs of the written objects.
    fn inventory_after(&self, result: &ActResult) -> Inventory {
        let mut after = self.inventory.clone();
        result.applied.iter().for_each(|(key, applied)| after.set_uid(key, &applied.live.uid));
        after
    }
}
