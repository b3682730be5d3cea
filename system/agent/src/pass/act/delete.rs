//! Deletes, after every write. Before each attempt the object is read and checked again, with its content, and the attempt is
//! valid for the object as it was read: other clients may have changed it, or have created something inside, since the plan
//! was made. Custom resources are waited for before anything else is deleted, and all objects before their namespace or CRD.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};

use super::backoff::Backoff;
use super::isolate::isolate;
use super::recheck::Recheck;
use super::result::{DeleteError, GONE_WAIT_MAX};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{Cluster, ClusterError, DeleteResult, LiveObject};
use crate::pass::content::{Content, ContentSearch};
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Delete, ForeignObjects};
use crate::pass::stage::{DeleteOrder, Stage};
use crate::target::instruction::Instruction;

/// Deletes objects of one stack.
pub struct Deleter<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Client of the cluster with the agent's own permissions, for the last objects of a removal: the permissions of the
    /// stack's ServiceAccount.
    pub own_cluster: Option<&'a Cluster>,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack before the deletes.
    pub inventory: &'a Inventory,
    /// Instruction that the pass executes.
    pub instruction: &'a Instruction<'a>,
    /// With the brake on: foreign objects whose deletion together with a namespace or CRD is approved.
    pub approved: Option<&'a ForeignObjects>,
}

/// Result of all deletes of a plan.
pub struct DeleteSummary {
    /// Inventory without the objects that are gone.
    pub inventory: Inventory,
    /// Objects that still exist after the wait.
    pub terminating: Vec<Arc<ObjectKey>>,
    /// Deletes that failed.
    pub errors: Vec<DeleteError>,
}

/// Place of an object in the order of deletion, if CRDs that still have custom resources come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    CustomResources,
    FilledCrds,
    Order(DeleteOrder),
}

/// True if objects of others are deleted together with a namespace or a CRD.
struct HasContent(bool);

impl Deleter<'_> {
    /// Deletes all objects in their order, and continues after failures. CRDs that still have custom resources, whose deletion is
    /// approved, come before everything but custom resources. Stops before the operator, CRDs and namespaces of custom
    /// resources that still exist, and before the permissions with which the other objects are deleted; `terminating` are
    /// objects that are being deleted already.
    pub async fn delete_all(&self, deletes: &[Delete], terminating: &[Arc<ObjectKey>]) -> DeleteSummary {
        let mut summary =
            DeleteSummary { inventory: self.inventory.clone(), terminating: Vec::new(), errors: Vec::new() };
        let (kept_crds, filled_crds) = self.check_crds(deletes).await;
        // The operator of a CRD that is kept, or waits for its custom resources, is kept too, with everything that it may need.
        let is_waited_for = |key: &Arc<ObjectKey>| {
            DeleteOrder::from_key(key) == DeleteOrder::CustomResource || Stage::from_key(key) == Stage::Crds
        };
        let mut has_custom_resources = !kept_crds.is_empty() || terminating.iter().any(is_waited_for);
        summary.errors.extend(kept_crds);
        let mut accepted: Vec<&Delete> = Vec::new();
        let place = |delete: &&Delete| match delete.order {
            DeleteOrder::CustomResource => Place::CustomResources,
            _ if filled_crds.contains(&delete.entry.key) => Place::FilledCrds,
            order => Place::Order(order),
        };
        let mut deletes: Vec<&Delete> = deletes.iter().collect();
        deletes.sort_by_key(place);
        let steps: Vec<&[&Delete]> = deletes.chunk_by(|one, other| place(one) == place(other)).collect();
        for (index, deletes) in steps.iter().enumerate() {
            let order = deletes.first().map(|delete| delete.order);
            let of_custom_resources = |place: Place| matches!(place, Place::CustomResources | Place::FilledCrds);
            let is_custom_step = deletes.first().map(place).is_some_and(of_custom_resources);
            if has_custom_resources && order != Some(DeleteOrder::CustomResource) {
                break;
            }
            let is_other = |key: &Arc<ObjectKey>| DeleteOrder::from_impersonated_key(key) != DeleteOrder::Permissions;
            let is_any_left = || !summary.errors.is_empty() || !accepted.is_empty() || terminating.iter().any(is_other);
            if order == Some(DeleteOrder::Permissions) && is_any_left() {
                break;
            }
            let delete = |delete| async move { (delete, self.delete(delete).await) };
            for (delete, deleted) in run_concurrently(deletes.to_vec(), delete).await {
                match deleted {
                    Ok(DeleteResult::Accepted) => accepted.push(delete),
                    // Gone, or replaced by another client: not an object of the stack any more.
                    Ok(DeleteResult::Absent) => summary.inventory.remove(&delete.entry.key),
                    Err(error) => {
                        has_custom_resources |= is_custom_step;
                        summary.errors.push(error);
                    }
                }
            }
            let next = steps.get(index + 1).and_then(|deletes| deletes.first()).map(|delete| delete.order);
            let waits = |next: DeleteOrder| next.has_content() || next == DeleteOrder::Permissions;
            if is_custom_step || next.is_none_or(waits) {
                // Custom resources cannot be read after their CRD is deleted.
                self.wait_until_gone(&mut accepted, &mut summary).await;
                has_custom_resources |= accepted.iter().map(place).any(of_custom_resources);
            }
        }
        summary.terminating = accepted.iter().map(|delete| delete.entry.key.clone()).collect();
        summary
    }

    /// Returns the reasons why CRDs are kept: custom resources that are declared, or belong to others. And returns the CRDs with
    /// custom resources that are deleted with them, for which their operator is still needed.
    async fn check_crds(&self, deletes: &[Delete]) -> (Vec<DeleteError>, BTreeSet<Arc<ObjectKey>>) {
        let is_crd = |delete: &&Delete| Stage::from_key(&delete.entry.key) == Stage::Crds;
        let check = |delete| async move { (delete, self.check_content(delete).await) };
        let (mut kept, mut filled) = (Vec::new(), BTreeSet::new());
        let crds: Vec<&Delete> = deletes.iter().filter(is_crd).collect();
        for (delete, checked) in run_concurrently(crds, check).await {
            match checked {
                Err(reason) => kept.push(reason),
                Ok(HasContent(true)) => drop(filled.insert(delete.entry.key.clone())),
                Ok(HasContent(false)) => {}
            }
        }
        (kept, filled)
    }

    /// Deletes an object, unless a newer revision of the stack may declare it.
    async fn delete(&self, delete: &Delete) -> Result<DeleteResult, DeleteError> {
        let interrupted = || DeleteError::Interrupted(delete.entry.key.clone());
        if self.cluster.has_ended_retries() {
            return Err(interrupted());
        }
        // A request that was not retried because of the change says nothing about the object.
        isolate("delete", &delete.entry.key, self.check_and_delete(delete))
            .await
            .map_err(|error| if self.cluster.has_ended_retries() { interrupted() } else { error })
    }

    async fn check_and_delete(&self, delete: &Delete) -> Result<DeleteResult, DeleteError> {
        let by = async |cluster: &Cluster| -> Result<DeleteResult, DeleteError> {
            cluster.delete(&delete.entry.key, || self.check(delete)).await?
        };
        let deleted = match (by(self.cluster).await, self.own_cluster) {
            // Nothing else of the stack is left, and the ServiceAccount has lost its permissions.
            (Err(DeleteError::Cluster(error)), Some(own_cluster))
                if delete.order == DeleteOrder::Permissions && error.is_forbidden() =>
            {
                by(own_cluster).await?
            }
            (deleted, _) => deleted?,
        };
        if deleted == DeleteResult::Accepted {
            tracing::info!("deleted {}", delete.entry.key);
        }
        Ok(deleted)
    }

    /// Reads an object that is to be deleted, and checks that it still may be. Returns `None` if it is gone, or if another
    /// client has created a new one: that is not an object of the stack.
    async fn check(&self, delete: &Delete) -> Result<Option<LiveObject>, DeleteError> {
        let recheck = Recheck { cluster: self.cluster, stack: self.stack, instruction: self.instruction };
        let live = recheck.read(&delete.entry, &delete.uid).await?;
        if live.as_ref().is_some_and(|live| live.is_prune_disabled) {
            return Err(DeleteError::Changed(delete.entry.key.clone()));
        }
        // Last, because no precondition of the delete covers it.
        if live.is_some() && delete.order.has_content() {
            self.check_content(delete).await?;
        }
        recheck.check_dropped(&delete.entry)?;
        Ok(live)
    }

    /// Checks the content of a namespace or a CRD: another client may have created an object since the plan was made.
    async fn check_content(&self, delete: &Delete) -> Result<HasContent, DeleteError> {
        let key = &delete.entry.key;
        let (cluster, stack, inventory) = (self.cluster, self.stack, self.inventory);
        let search = ContentSearch { cluster, stack, inventory, claims: &|| self.instruction.claims() };
        let (foreign, kept) = match search.find(delete).await? {
            Content::OfStack { key: declared, stack } => {
                let stack = self.instruction.claims().name(stack);
                return Err(DeleteError::ContainsDeclared { key: key.clone(), declared, stack });
            }
            Content::Foreign { objects, kept } => (objects, kept),
            Content::Unknown => return Err(DeleteError::ContentUnknown(key.clone())),
        };
        let has_content = HasContent(!foreign.is_empty());
        let Some(approved) = &self.approved else {
            // With the brake off every deletion is approved, except that of objects which are to be kept.
            return match kept {
                Some(kept) => Err(DeleteError::ContainsKept { key: key.clone(), kept }),
                None => Ok(has_content),
            };
        };
        let approved = approved.get(key).map(Vec::as_slice).unwrap_or_default();
        match foreign.into_iter().find(|foreign| !approved.contains(foreign)) {
            Some(foreign) => Err(DeleteError::ContainsForeign { key: key.clone(), foreign }),
            None => Ok(has_content),
        }
    }

    /// Removes objects that are gone from the inventory and from `accepted`, until all are, the time is over, or a newer revision
    /// waits.
    async fn wait_until_gone(&self, accepted: &mut Vec<&Delete>, summary: &mut DeleteSummary) {
        let mut backoff = Backoff::new(GONE_WAIT_MAX);
        loop {
            match self.find_existing(accepted).await {
                Ok(existing) => {
                    accepted.iter().filter(|delete| !existing.contains(&delete.entry.key)).for_each(|delete| {
                        summary.inventory.remove(&delete.entry.key);
                    });
                    accepted.retain(|delete| existing.contains(&delete.entry.key));
                }
                Err(error) => return summary.errors.push(error.into()),
            }
            if accepted.is_empty() || self.cluster.has_ended_retries() || !backoff.pause().await {
                return;
            }
        }
    }

    async fn find_existing<'a>(&self, deletes: &[&'a Delete]) -> Result<BTreeSet<Arc<ObjectKey>>, ClusterError> {
        let read = |delete: &'a Delete| async move {
            let live = self.cluster.get_metadata(&delete.entry.resource, &delete.entry.key).await?;
            Ok(live.filter(|live| live.uid == delete.uid).map(|_| delete.entry.key.clone()))
        };
        let read: Vec<Result<Option<Arc<ObjectKey>>, ClusterError>> = run_concurrently(deletes.to_vec(), read).await;
        read.into_iter().filter_map(Result::transpose).collect()
    }
}
