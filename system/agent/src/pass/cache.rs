//! State of a stack that one pass leaves to the next.

use sindri_model::{ObjectKey, StackId};

use super::desired::DesiredStack;
use super::inventory::{Inventory, InventoryError, save_inventory};
use super::order::ReadyObjects;
use super::plan::AppliedState;
use crate::cluster::{ApiResource, Cluster};

/// Cached state of a stack between passes. It may be lost: a pass without it reads everything again.
#[derive(Default)]
pub struct PassCache {
    /// Inventory as it is in the cluster; `None` until it was read.
    pub inventory: Option<Inventory>,
    /// True if this process has read an inventory of the stack before.
    pub had_inventory: bool,
    /// Number of restores of etcd that are reflected in the cached state.
    pub restores: u64,
    /// True if etcd was restored since the inventory was read, or the inventory lacks objects.
    pub is_restored: bool,
    /// True if the cluster was searched for objects that the inventory lacks, since the inventory was read.
    pub is_searched: bool,
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
