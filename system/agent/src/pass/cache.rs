//! State of a stack that one pass leaves to the next.

use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};

use super::creation::{CreationResult, SeenResult};
use super::desired::{DesiredObject, DesiredStack};
use super::inventory::{Completeness, Inventory, InventoryError, load_inventory, save_inventory};
use super::order::ReadyObjects;
use super::plan::AppliedState;
use crate::cluster::{ApiResource, Cluster};

/// Cached state of a stack between passes. It may be lost: a pass without it reads everything again.
#[derive(Default)]
pub struct PassCache {
    /// Inventory as it is in the cluster; `None` until it was read.
    pub inventory: Option<Inventory>,
    /// True if the next pass reads the inventory again: a person may have deleted it, because a kind in it is not served any more.
    pub is_inventory_doubtful: bool,
    /// Inventory before it was read again, until a new one is stored: it knows what was applied once.
    pub doubted: Option<Inventory>,
    /// True if this process has read an inventory of the stack before.
    pub had_inventory: bool,
    /// Number of restores of etcd that are reflected in the cached state.
    pub restores: u64,
    /// True if etcd was restored since the inventory was read, or the inventory lacks objects.
    pub is_restored: bool,
    /// True if the cluster was searched for objects that the inventory lacks, since the inventory was read.
    pub is_searched: bool,
    /// Objects that were kept since the revision is the newest one, and do not belong to the stack any more.
    pub released: Vec<Arc<ObjectKey>>,
    /// Number of last searches of a removal that failed.
    pub failed_searches: u32,
    /// Result of the last pass.
    pub last_applied: Option<AppliedState>,
    /// Objects that were ready after the last pass, while others wait for them.
    pub ready: ReadyObjects,
    /// Resolved bundle, and the ignored fields of the policy with which it was resolved.
    pub desired: Option<(DesiredStack, String)>,
}

impl PassCache {
    /// Returns the resource type and the UID of an object of the stack, if they are known.
    pub fn find_object(&self, key: &ObjectKey) -> Option<(&ApiResource, Option<&str>)> {
        let entry = self.inventory.as_ref().and_then(|inventory| inventory.get(key));
        let declared = || self.desired.as_ref()?.0.goal.objects().iter().find(|object| *object.key == *key);
        let resource = entry.map(|entry| &entry.resource).or_else(|| Some(&declared()?.resource))?;
        Some((resource, entry.and_then(|entry| entry.uid.as_deref())))
    }

    /// Returns the objects that are applied once and whose result was not seen yet. A pass that failed may have left nothing but
    /// the inventory in the cluster.
    pub async fn find_without_result(
        &mut self,
        cluster: &Cluster,
        stack: StackId,
    ) -> Result<Vec<Arc<DesiredObject>>, InventoryError> {
        let objects = self.desired.as_ref().map_or(&[][..], |(desired, _)| desired.goal.objects());
        let once: Vec<&Arc<DesiredObject>> = objects.iter().filter(|object| object.once.is_some()).collect();
        if once.is_empty() {
            return Ok(Vec::new());
        }
        if self.inventory.is_none() && self.had_inventory && !self.is_restored {
            let (inventory, completeness) = load_inventory(cluster, stack).await?;
            self.inventory = (completeness == Completeness::Complete).then_some(inventory);
        }
        let Some(inventory) = &self.inventory else { return Ok(Vec::new()) };
        let is_unseen = |object: &&Arc<DesiredObject>| {
            let creation = inventory.get(&object.key).and_then(|entry| entry.once.as_ref());
            creation.is_some_and(|creation| creation.result == CreationResult::Unseen)
        };
        Ok(once.into_iter().filter(is_unseen).cloned().collect())
    }

    /// Stores the results of objects that are applied once; `find` returns `None` for objects without one, or that are gone.
    pub async fn save_results(
        &mut self,
        cluster: &Cluster,
        stack: StackId,
        find: impl Fn(&ObjectKey) -> Option<SeenResult>,
    ) -> Result<(), InventoryError> {
        let Some(before) = self.inventory.take_if(|inventory| inventory.has_once()) else { return Ok(()) };
        let mut after = before.clone();
        after.set_results(find);
        after.versions = save_inventory(cluster, stack, &before, &after).await?;
        self.inventory = Some(after);
        Ok(())
    }

    /// Returns the number of objects in the inventory, if it is known.
    pub fn managed_objects(&self) -> Option<usize> {
        self.inventory.as_ref().map(|inventory| inventory.entries().count())
    }
}
