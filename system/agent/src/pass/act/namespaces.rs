//! Namespaces that a pass created, and deletes again when a later step fails.

use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};
use tokio::time::Instant;

use super::result::ActResult;
use crate::cluster::{ApiResource, AppliedObject, Cluster, LiveObject};
use crate::pass::content::{SEARCH_MAX, find_foreign_in_namespace};
use crate::pass::inventory::Inventory;
use crate::pass::plan::Write;
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

    /// Returns true if the pass has applied an object in the namespace. It may be gone again, as a Job that has completed.
    pub fn is_used(&self, result: &ActResult) -> bool {
        result.applied.keys().any(|key| key.namespace.as_ref() == Some(&self.key.name))
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
    /// Deletes the namespaces, unless they contain objects, also of the stack itself, another stack declares an object in them,
    /// or their content cannot be read.
    pub async fn delete(&self, created: &[CreatedNamespace]) {
        for namespace in created {
            let key = &namespace.key;
            match self.cluster.delete(key, || self.check(namespace)).await {
                Ok(Ok(_)) => tracing::info!("deleted {key}, which the failed pass had created"),
                Ok(Err(reason)) => tracing::info!("kept {key}, {reason}"),
                Err(error) => tracing::warn!("could not delete {key}, which the failed pass had created: {error}"),
            }
        }
    }

    /// Returns a namespace as it is now, if it still exists, or the reason why it must be kept.
    async fn check(&self, namespace: &CreatedNamespace) -> Result<Option<LiveObject>, String> {
        let live = self.cluster.get_metadata(&namespace.resource, &namespace.key).await;
        let live = live.map_err(|error| format!("which cannot be read: {error}"))?;
        let live = live.filter(|live| live.uid == namespace.uid);
        self.check_content(&namespace.key.name).await?;
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
    async fn check_content(&self, name: &str) -> Result<(), String> {
        // An object of the stack itself works, and is kept like one of another client.
        let is_left_out = |_: &LiveObject| false;
        // A list that is retried for minutes is not true any more when the last one has been read.
        let cluster = &self.cluster.with_deadline(Instant::now() + SEARCH_MAX);
        match find_foreign_in_namespace(cluster, name, self.inventory, is_left_out).await {
            Ok(objects) => objects.first().map_or(Ok(()), |object| Err(format!("which contains {}", object.key))),
            Err(error) => Err(format!("whose content cannot be read: {error}")),
        }
    }
}
