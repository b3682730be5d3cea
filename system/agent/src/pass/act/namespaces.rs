//! Namespaces that a pass created, and deletes again when a later step fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};

use super::result::ActResult;
use crate::cluster::{ApiResource, AppliedObject, Cluster};
use crate::pass::content::find_foreign_in_namespace;
use crate::pass::inventory::Inventory;
use crate::pass::plan::Write;
use crate::pass::stage::Stage;
use crate::target::claims::Claims;

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
    /// Client for deletes, which does not retry any more once the target state of any stack has changed.
    pub cluster: &'a Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack.
    pub inventory: &'a Inventory,
    /// Claims of all stacks when the pass began.
    pub claims: &'a Claims,
}

impl NamespaceRollback<'_> {
    /// Deletes the namespaces, unless they contain foreign objects, another stack declares an object in them, or their
    /// content cannot be read. Returns the names of those that are deleted, or may be.
    pub async fn delete(&self, created: &[CreatedNamespace], result: &ActResult) -> Vec<String> {
        let own_uids = result.applied.values().map(|applied| applied.live.uid.as_str()).collect();
        let mut deleted = Vec::new();
        for namespace in created {
            if let Err(reason) = self.check_content(namespace, &own_uids).await {
                tracing::info!("kept {}, {reason}", namespace.key);
                continue;
            }
            // The claims are out of date now: a new stack, or a newer revision of this one, may have objects there.
            if self.cluster.has_ended_retries() {
                break;
            }
            deleted.push(namespace.key.name.clone());
            match self.cluster.delete(&namespace.resource, &namespace.key, &namespace.uid).await {
                Ok(_) => tracing::info!("deleted {}, which the failed pass had created", namespace.key),
                Err(error) => {
                    tracing::warn!("could not delete {}, which the failed pass had created: {error}", namespace.key)
                }
            }
        }
        deleted
    }

    /// Returns the reason why a namespace must be kept.
    async fn check_content(&self, namespace: &CreatedNamespace, own_uids: &BTreeSet<&str>) -> Result<(), String> {
        let name = &namespace.key.name;
        if self.claims.has_other_in_namespace(self.stack, name) {
            return Err("in which another stack declares objects".to_owned());
        }
        match find_foreign_in_namespace(self.cluster, self.inventory, name, own_uids).await {
            Ok(foreign) => foreign.first().map_or(Ok(()), |foreign| Err(format!("which contains {}", foreign.key))),
            Err(error) => Err(format!("whose content cannot be read: {error}")),
        }
    }
}
