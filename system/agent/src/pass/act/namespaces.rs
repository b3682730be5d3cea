//! Namespaces that a pass created, and deletes again when a later step fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};
use tokio::time::Instant;

use super::result::ActResult;
use crate::cluster::{ApiResource, AppliedObject, Cluster, LiveObject};
use crate::pass::content::{SEARCH_MAX, find_foreign_in_namespace};
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Write, is_proved};
use crate::pass::stage::Stage;
use crate::target::instruction::Instruction;

/// Namespace that did not exist before this pass.
pub struct CreatedNamespace {
    key: Arc<ObjectKey>,
    resource: Arc<ApiResource>,
    uid: String,
}

impl CreatedNamespace {
    /// Returns the namespace that a write created, if it did, unless its annotation keeps it.
    pub fn from_write(write: &Write, result: &ActResult) -> Option<Self> {
        let is_new = |applied: &&AppliedObject| applied.created && !applied.live.is_prune_disabled;
        let applied = result.applied.get(&write.object.key).filter(is_new)?;
        let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
        (write.stage == Stage::Namespaces).then(|| Self { key, resource, uid: applied.live.uid.clone() })
    }
}

/// Deletes the namespaces that a failed pass created.
pub struct NamespaceRollback<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack.
    pub inventory: &'a Inventory,
    /// Instruction that the pass executed.
    pub instruction: &'a Instruction<'a>,
}

impl NamespaceRollback<'_> {
    /// Deletes the namespaces, unless they contain foreign objects, another stack declares an object in them, or their
    /// content cannot be read. Returns the names of those that are deleted, or may be.
    pub async fn delete(&self, created: &[CreatedNamespace], result: &ActResult) -> Vec<String> {
        let own_uids: BTreeSet<&str> = result.applied.values().map(|applied| applied.live.uid.as_str()).collect();
        let mut deleted = Vec::new();
        for namespace in created {
            match self.cluster.delete(&namespace.key, || self.check(namespace, &own_uids)).await {
                Ok(Err(reason)) => {
                    tracing::info!("kept {}, {reason}", namespace.key);
                    continue;
                }
                Ok(Ok(_)) => tracing::info!("deleted {}, which the failed pass had created", namespace.key),
                Err(error) => {
                    tracing::warn!("could not delete {}, which the failed pass had created: {error}", namespace.key);
                    if error.proves_rejection() {
                        continue;
                    }
                }
            }
            deleted.push(namespace.key.name.clone());
        }
        deleted
    }

    /// Returns a namespace as it is now, if it still exists, or the reason why it must be kept.
    async fn check(
        &self,
        namespace: &CreatedNamespace,
        own_uids: &BTreeSet<&str>,
    ) -> Result<Option<LiveObject>, String> {
        let live = self.cluster.get_metadata(&namespace.resource, &namespace.key).await;
        let live = live.map_err(|error| format!("which cannot be read: {error}"))?;
        let live = live.filter(|live| live.uid == namespace.uid);
        self.check_content(&namespace.key.name, own_uids).await?;
        if self.instruction.claims().has_other_in_namespace(self.stack, &namespace.key.name) {
            return Err("in which another stack declares objects".to_owned());
        }
        match self.instruction.is_current() {
            true => Ok(live),
            // A newer revision may have objects there.
            false => Err("because the stack has a newer revision or policy".to_owned()),
        }
    }

    /// Returns the reason why a namespace must be kept.
    async fn check_content(&self, name: &str, own_uids: &BTreeSet<&str>) -> Result<(), String> {
        let is_own = |object: &LiveObject| {
            let entry = self.inventory.get(&object.key);
            own_uids.contains(object.uid.as_str()) || entry.is_some_and(|entry| is_proved(self.stack, entry, object))
        };
        // A list that is retried for minutes is not true any more when the last one has been read.
        let cluster = &self.cluster.with_deadline(Instant::now() + SEARCH_MAX);
        match find_foreign_in_namespace(cluster, name, self.inventory, is_own).await {
            Ok(foreign) => foreign.first().map_or(Ok(()), |foreign| Err(format!("which contains {}", foreign.key))),
            Err(error) => Err(format!("whose content cannot be read: {error}")),
        }
    }
}
