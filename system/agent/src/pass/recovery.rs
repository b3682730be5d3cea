//! Inventory of a stack at the beginning of a pass. One that was lost is built again from a search of the cluster.

use std::time::Duration;

use sindri_client::Client;
use sindri_model::{AgentId, StackId};

use super::creation::{Creation, CreationResult};
use super::desired::{DesiredObject, DesiredStack};
use super::former_stacks::FormerStacks;
use super::inventory::{Completeness, Entry, Inventory, InventoryError, load_inventory, rewrite_inventory};
use super::observe::{FoundObjects, find_stack_objects};
use super::summary::PassError;
use crate::cluster::Cluster;
use crate::target::instruction::Instruction;

/// Time limit of each step of a search that leaves out kinds that cannot be listed in time.
const SEARCH_MAX: Duration = Duration::from_secs(15);

/// Reads the inventory of one stack.
#[derive(Clone, Copy)]
pub struct InventoryReader<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Client of the broker, which knows whether the agent has had the stack before.
    pub broker: &'a Client,
    /// Stacks whose inventories may have been lost before the agent was installed.
    pub former_stacks: &'a FormerStacks,
    /// Id of the agent.
    pub agent: AgentId,
    /// Id of the stack.
    pub stack: StackId,
    /// Revision or removal that the pass executes; it has the names of stacks.
    pub instruction: &'a Instruction<'a>,
}

/// Inventory as it was read.
pub struct ReadInventory {
    /// Inventory.
    pub inventory: Inventory,
    /// True if the cluster was searched for objects that it lacks.
    pub is_searched: bool,
    /// True if it was built again, and is not stored yet.
    is_rebuilt: bool,
    /// True if some of it was lost. After a restore of etcd it is complete, and what it lacks was not created in this etcd.
    is_lost: bool,
}

impl ReadInventory {
    /// Returns true if it was lost on a cluster that has objects of the stack: the broker must say whether the revision was applied.
    pub fn may_be_applied(&self) -> bool {
        self.is_lost && !self.inventory.is_empty()
    }
}

impl InventoryReader<'_> {
    /// Reads the inventory of the stack. One that was lost, as a whole or in part, is built again from a search of the
    /// cluster, before anything is concluded from it. `is_outdated` is true after a restore of etcd, because objects that were
    /// deleted since exist again, and if objects were found that the inventory lacks. `must_exist` is true if there was one
    /// before, or the stack is to be removed.
    /// `doubted` is the inventory before it was lost, if this process knows it: what it has applied once is not created again.
    pub async fn read(
        &self,
        is_outdated: bool,
        must_exist: bool,
        doubted: Option<&Inventory>,
    ) -> Result<ReadInventory, PassError> {
        let Self { cluster, stack, .. } = *self;
        let (mut inventory, completeness) = load_inventory(cluster, stack).await?;
        let is_known = match completeness {
            Completeness::Complete => is_outdated,
            Completeness::Partial => true,
            Completeness::Missing => must_exist || self.is_known_stack().await,
        };
        let is_former =
            !is_known && completeness == Completeness::Missing && self.former_stacks.contains(cluster, stack).await?;
        let is_searched = is_known || is_former;
        if is_searched {
            // This agent never had the inventory of a former stack: the stack does not wait for an API group that does not respond.
            let limit = is_former.then_some(SEARCH_MAX);
            let FoundObjects { entries, errors } = find_stack_objects(cluster, stack, limit).await?;
            for error in errors {
                if !is_former {
                    // Nothing may be concluded from an inventory without the objects of a kind.
                    return Err(error.into());
                }
                let name = self.instruction.claims().name(stack);
                tracing::warn!("stack {name}: the search of the cluster leaves out a kind: {error}");
            }
            for entry in entries {
                if inventory.get(&entry.key).is_none() {
                    inventory.insert(entry);
                }
            }
        }
        if completeness == Completeness::Missing {
            let once = doubted.into_iter().flat_map(Inventory::entries).filter(|entry| entry.once.is_some());
            once.for_each(|entry| inventory.insert(entry.clone()));
        }
        let is_rebuilt = is_searched && (!inventory.is_empty() || completeness == Completeness::Partial);
        Ok(ReadInventory { inventory, is_searched, is_rebuilt, is_lost: completeness != Completeness::Complete })
    }

    /// Stores an inventory that was built again, and returns it. `applied` is the desired state if the broker knows that
    /// this revision was completely applied: it is not applied as a new one, and its objects that are applied once were created, if a part
    /// of the inventory was lost and any object of the stack proves that this was on this cluster.
    pub async fn store(
        &self,
        read: ReadInventory,
        applied: Option<&DesiredStack>,
    ) -> Result<Inventory, InventoryError> {
        let may_be_applied = read.may_be_applied();
        let ReadInventory { mut inventory, is_rebuilt, .. } = read;
        if is_rebuilt {
            if let (true, Some(applied)) = (may_be_applied, applied) {
                inventory.applied = Some(applied.position);
                applied.goal.objects().iter().for_each(|object| record_creation(&mut inventory, object));
            }
            let (name, count) = (self.instruction.claims().name(self.stack), inventory.entries().count());
            tracing::warn!("stack {name}: its inventory was lost or outdated, and built again with {count} objects");
            inventory.versions = rewrite_inventory(self.cluster, self.stack, &inventory).await?;
        }
        Ok(inventory)
    }

    /// Searches for objects of the stack that the inventory lacks, and adds them. Kinds that cannot be listed in time are left out,
    /// because the inventory may well be right: a removal must not wait for an API group that does not respond. Fails if
    /// nothing could be searched.
    pub async fn find_forgotten(&self, inventory: &mut Inventory) -> Result<bool, PassError> {
        let FoundObjects { entries, errors } = find_stack_objects(self.cluster, self.stack, Some(SEARCH_MAX)).await?;
        for error in errors {
            tracing::warn!("stack {}: the last search of the removal leaves out a kind: {error}", self.stack);
        }
        let forgotten: Vec<Entry> = entries.into_iter().filter(|entry| inventory.get(&entry.key).is_none()).collect();
        let is_any = !forgotten.is_empty();
        forgotten.into_iter().for_each(|entry| inventory.insert(entry));
        if is_any {
            inventory.versions = rewrite_inventory(self.cluster, self.stack, inventory).await?;
        }
        Ok(is_any)
    }

    /// Adds objects to an inventory that lacks them, and stores it.
    pub async fn add(&self, inventory: &mut Inventory, objects: Vec<Entry>) -> Result<(), InventoryError> {
        tracing::warn!("stack {}: its inventory lacked {} objects", self.stack, objects.len());
        objects.into_iter().for_each(|entry| inventory.insert(entry));
        inventory.versions = rewrite_inventory(self.cluster, self.stack, inventory).await?;
        Ok(())
    }

    /// Returns true if this agent has reported about the stack before. Without a response it may have.
    async fn is_known_stack(&self) -> bool {
        let report = self.broker.get_reported_stack_status(self.agent, self.stack).await;
        report.map_or(true, |report| report.is_some())
    }
}

/// Records that an object that is applied once was created, unless the inventory has its creation.
fn record_creation(inventory: &mut Inventory, object: &DesiredObject) {
    let known = inventory.get(&object.key);
    if let (Some(manifest), None) = (&object.once, known.and_then(|entry| entry.once.as_ref())) {
        let uid = known.and_then(|entry| entry.uid.clone());
        let (key, resource) = (object.key.clone(), object.resource.clone());
        let creation = Creation { manifest: manifest.clone(), result: CreationResult::Completed };
        inventory.insert(Entry { uid, once: Some(creation), ..Entry::new(key, resource) });
    }
}
