//! Deletes, after every write: by identity, and seen gone before what they live in goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::ObjectKey;

use super::backoff::Patience;
use super::executor::{ActError, Done, Executor, GONE_WAIT_MAX, NotDeleted};
use crate::cluster::concurrency::at_once;
use crate::cluster::{ClusterError, Deletion};
use crate::pass::foreign_objects::strangers;
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Delete, Stage};

impl Executor<'_> {
    pub(super) async fn delete_all(&mut self, deletes: &[Delete], done: &mut Done) -> Result<(), ActError> {
        let mut failed: Vec<NotDeleted> = Vec::new();
        let mut after = self.inventory.clone();
        let mut accepted = Vec::new();
        let stages: Vec<&[Delete]> = deletes.chunk_by(|one, other| stage(one) == stage(other)).collect();
        for (index, deletes) in stages.iter().enumerate() {
            let this = &*self;
            let delete = |delete| async move { (delete, this.delete(delete).await) };
            for (delete, deleted) in at_once(deletes.iter().collect(), delete).await {
                match deleted {
                    Ok(Deletion::Accepted) => accepted.push(delete),
                    // Gone, or someone else's: no longer ours either way.
                    Ok(Deletion::Absent | Deletion::Replaced) => after.remove(&delete.entry.key),
                    Err(error) => failed.push(error),
                }
            }
            let next = stages.get(index + 1).and_then(|deletes| deletes.first()).map(stage);
            if next.is_none_or(Stage::comes_before_validation) {
                // Instances go before their definition does, or nobody could see them go.
                self.await_gone(&mut accepted, &mut after, &mut failed).await;
            }
        }
        done.leaving.extend(accepted.iter().map(|delete| delete.entry.key.clone()));
        self.save(after).await?;
        if failed.is_empty() { Ok(()) } else { Err(ActError::Deletes(failed)) }
    }

    async fn delete(&self, delete: &Delete) -> Result<Deletion, NotDeleted> {
        let key = &delete.entry.key;
        if let Some(approved) = &self.guard {
            let approved = approved.get(key).map(Vec::as_slice).unwrap_or_default();
            // Somebody may have moved in since the plan was made.
            if let Some(held) =
                strangers(self.cluster, self.inventory, delete).await?.into_iter().find(|held| !approved.contains(held))
            {
                return Err(NotDeleted::HoldsOthers { key: key.clone(), held });
            }
        }
        let deletion = self.cluster.delete(&delete.entry.resource, key, &delete.uid).await?;
        if deletion == Deletion::Accepted {
            tracing::info!("deleted {key}");
        }
        Ok(deletion)
    }

    /// Takes what is seen gone out of the inventory, and leaves the rest in `accepted`.
    async fn await_gone(&self, accepted: &mut Vec<&Delete>, after: &mut Inventory, failed: &mut Vec<NotDeleted>) {
        let mut patience = Patience::new(GONE_WAIT_MAX);
        loop {
            match self.still_there(accepted).await {
                Ok(there) => {
                    accepted.iter().filter(|delete| !there.contains(&delete.entry.key)).for_each(|delete| {
                        after.remove(&delete.entry.key);
                    });
                    accepted.retain(|delete| there.contains(&delete.entry.key));
                }
                Err(error) => return failed.push(error.into()),
            }
            if accepted.is_empty() || !patience.pause().await {
                return;
            }
        }
    }

    async fn still_there<'a>(&self, deletes: &[&'a Delete]) -> Result<BTreeSet<Arc<ObjectKey>>, ClusterError> {
        let look = |delete: &'a Delete| async move {
            let live = self.cluster.metadata(&delete.entry.resource, &delete.entry.key).await?;
            Ok(live.filter(|live| live.uid == delete.uid).map(|_| delete.entry.key.clone()))
        };
        let seen: Vec<Result<Option<Arc<ObjectKey>>, ClusterError>> = at_once(deletes.to_vec(), look).await;
        seen.into_iter().filter_map(Result::transpose).collect()
    }
}

fn stage(delete: &Delete) -> Stage {
    Stage::of(&delete.entry.key)
}
