//! Deletes, after every write: each with its UID as precondition, and waited for before the namespace or CRD is deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::ObjectKey;

use super::backoff::Backoff;
use super::result::{DeleteError, GONE_WAIT_MAX};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{Cluster, ClusterError, DeleteResult};
use crate::pass::foreign_objects::find_foreign_objects;
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Delete, ForeignObjects, Stage};

/// Deletes objects of one stack.
pub struct Deleter<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Inventory of the stack before the deletes.
    pub inventory: &'a Inventory,
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

impl Deleter<'_> {
    /// Deletes all objects, stage by stage, and continues after failures.
    pub async fn delete_all(&self, deletes: &[Delete]) -> DeleteSummary {
        let mut summary =
            DeleteSummary { inventory: self.inventory.clone(), terminating: Vec::new(), errors: Vec::new() };
        let mut accepted = Vec::new();
        let stages: Vec<&[Delete]> = deletes.chunk_by(|one, other| stage(one) == stage(other)).collect();
        for (index, deletes) in stages.iter().enumerate() {
            let delete = |delete| async move { (delete, self.delete(delete).await) };
            for (delete, deleted) in run_concurrently(deletes.iter().collect(), delete).await {
                match deleted {
                    Ok(DeleteResult::Accepted) => accepted.push(delete),
                    // Gone, or replaced by another client: not an object of the stack any more.
                    Ok(DeleteResult::Absent | DeleteResult::Replaced) => summary.inventory.remove(&delete.entry.key),
                    Err(error) => summary.errors.push(error),
                }
            }
            let next = stages.get(index + 1).and_then(|deletes| deletes.first()).map(stage);
            if next.is_none_or(Stage::precedes_validation) {
                // Custom resources are waited for before their CRD is deleted, because they cannot be read after that.
                self.wait_until_gone(&mut accepted, &mut summary).await;
            }
        }
        summary.terminating = accepted.iter().map(|delete| delete.entry.key.clone()).collect();
        summary
    }

    async fn delete(&self, delete: &Delete) -> Result<DeleteResult, DeleteError> {
        let key = &delete.entry.key;
        if let Some(approved) = &self.approved {
            let approved = approved.get(key).map(Vec::as_slice).unwrap_or_default();
            // Another client may have created an object since the plan was made.
            let foreign = find_foreign_objects(self.cluster, self.inventory, delete).await?;
            if let Some(foreign) = foreign.into_iter().find(|foreign| !approved.contains(foreign)) {
                return Err(DeleteError::ContainsForeign { key: key.clone(), foreign });
            }
        }
        let deleted = self.cluster.delete(&delete.entry.resource, key, &delete.uid).await?;
        if deleted == DeleteResult::Accepted {
            tracing::info!("deleted {key}");
        }
        Ok(deleted)
    }

    /// Removes objects that are gone from the inventory and from `accepted`, until all are or the time is over.
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
            if accepted.is_empty() || !backoff.pause().await {
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

fn stage(delete: &Delete) -> Stage {
    Stage::from_key(&delete.entry.key)
}
