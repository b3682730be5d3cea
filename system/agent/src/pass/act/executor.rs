//! Executes a plan. The plan decides what is written and in which order; the executor decides nothing.
//!
//! Writes the inventory before the objects, stops after a failed write, continues after a failed delete, and deletes the
//! namespaces that a failed pass created.

use futures_util::TryFutureExt;
use futures_util::future::try_join;
use sindri_model::StackId;

use super::delete::Deleter;
use super::namespaces::delete_created_namespaces;
use super::result::{ActError, ActResult};
use super::write::{ValidationResult, Writer};
use crate::cluster::Cluster;
use crate::pass::inventory::{Inventory, RevisionPosition, save_inventory};
use crate::pass::plan::{Delete, ForeignObjects, Plan};

/// Executes the plans of one stack.
pub struct Executor<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack, kept equal to the one in the cluster.
    pub inventory: &'a mut Inventory,
    /// Position of the revision.
    pub position: RevisionPosition,
    /// With the brake on: foreign objects whose deletion together with a namespace or CRD is approved.
    pub approved: Option<ForeignObjects>,
}

impl Executor<'_> {
    /// Executes a plan; after a failed write deletes the namespaces that it created.
    pub async fn execute(&mut self, plan: &Plan) -> Result<ActResult, ActError> {
        let validation = self.prepare(plan).await?;
        let mut result = ActResult { terminating: plan.terminating.clone(), ..ActResult::default() };
        let mut created = Vec::new();
        let writer = Writer { cluster: self.cluster };
        if let Err(error) = writer.write_all(plan, validation, &mut result, &mut created).await {
            delete_created_namespaces(self.cluster, self.inventory, &created, &result).await;
            // UIDs that are known by now help the next pass; a second failure would hide the first.
            let _ = self.save(self.inventory_with_uids(&result)).await;
            return Err(error);
        }
        let mut after = self.inventory_with_uids(&result);
        if !plan.writes.is_empty() {
            after.applied = Some(self.position);
        }
        self.save(after).await?;
        writer.compare_all(&plan.checks, &mut result).await?;
        self.delete_all(&plan.deletes, &mut result).await?;
        Ok(result)
    }

    /// Stores the inventory before the first write. Validation writes nothing and runs at the same time, unless namespaces
    /// or CRDs are written first. If the inventory cannot be stored, validation is cancelled.
    async fn prepare<'a>(&mut self, plan: &'a Plan) -> Result<Option<ValidationResult<'a>>, ActError> {
        let save = save_inventory(self.cluster, self.stack, self.inventory, &plan.inventory_ahead);
        let save = save.map_err(ActError::from);
        let writer = Writer { cluster: self.cluster };
        let validation = match plan.split_at_validation() {
            ([], rest) => Some(try_join(save, async { Ok(writer.validate_all(rest).await) }).await?.1),
            _ => {
                save.await?;
                None
            }
        };
        *self.inventory = plan.inventory_ahead.clone();
        Ok(validation)
    }

    async fn delete_all(&mut self, deletes: &[Delete], result: &mut ActResult) -> Result<(), ActError> {
        let (cluster, inventory, approved) = (self.cluster, &*self.inventory, self.approved.as_ref());
        let deleted = Deleter { cluster, inventory, approved }.delete_all(deletes).await;
        result.terminating.extend(deleted.terminating);
        self.save(deleted.inventory).await?;
        if deleted.errors.is_empty() { Ok(()) } else { Err(ActError::Deletes(deleted.errors)) }
    }

    async fn save(&mut self, after: Inventory) -> Result<(), ActError> {
        save_inventory(self.cluster, self.stack, self.inventory, &after).await?;
        *self.inventory = after;
        Ok(())
    }

    fn inventory_with_uids(&self, result: &ActResult) -> Inventory {
        let mut after = self.inventory.clone();
        result.applied.iter().for_each(|(key, applied)| after.set_uid(key, &applied.live.uid));
        after
    }
}
