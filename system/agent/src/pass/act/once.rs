//! Records in the inventory that an object that is applied once was created, as soon as it was: a pass that ends before its
//! last write must not make the next one create it again.

use sindri_model::StackId;
use tokio::sync::Mutex;

use crate::cluster::{AppliedObject, Cluster};
use crate::pass::creation::CreationResult;
use crate::pass::desired::DesiredObject;
use crate::pass::inventory::{Inventory, InventoryError, save_inventory};

/// Records objects that are applied once.
pub struct OnceRecorder<'a> {
    cluster: &'a Cluster,
    stack: StackId,
    inventory: Mutex<&'a mut Inventory>,
}

impl<'a> OnceRecorder<'a> {
    /// Returns a recorder for the inventory of a stack, which is kept equal to the one in the cluster.
    pub fn new(cluster: &'a Cluster, stack: StackId, inventory: &'a mut Inventory) -> Self {
        Self { cluster, stack, inventory: Mutex::new(inventory) }
    }

    /// Records a written object, if it is applied once. One that is being deleted is created when it is gone.
    pub async fn record(&self, object: &DesiredObject, applied: &AppliedObject) -> Result<(), InventoryError> {
        let Some(manifest) = object.once.as_ref().filter(|_| !applied.live.is_terminating) else { return Ok(()) };
        let mut inventory = self.inventory.lock().await;
        let mut after = inventory.clone();
        after.set_uid(&object.key, &applied.live.uid);
        let result = CreationResult::from_health(&applied.health.health).unwrap_or(CreationResult::Unseen);
        after.set_once(&object.key, manifest, result);
        after.versions = save_inventory(self.cluster, self.stack, &inventory, &after).await?;
        **inventory = after;
        Ok(())
    }
}
