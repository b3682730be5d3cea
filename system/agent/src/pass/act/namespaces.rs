//! Namespaces that a pass created, and deletes again when a later step fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::ObjectKey;

use super::result::ActResult;
use crate::cluster::{ApiResource, Cluster};
use crate::pass::content::find_foreign_in_namespace;
use crate::pass::inventory::Inventory;
use crate::pass::plan::Write;
use crate::pass::stage::Stage;

/// Namespace that did not exist before this pass.
pub struct CreatedNamespace {
    key: Arc<ObjectKey>,
    resource: Arc<ApiResource>,
    uid: String,
}

impl CreatedNamespace {
    /// Returns the namespace that a write created, if it did.
    pub fn from_write(write: &Write, result: &ActResult) -> Option<Self> {
        let applied = result.applied.get(&write.object.key).filter(|applied| applied.created)?;
        let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
        (write.stage == Stage::Namespaces).then(|| Self { key, resource, uid: applied.live.uid.clone() })
    }
}

/// Deletes the namespaces that a failed pass created, unless they contain foreign objects or their content cannot be read.
/// Returns the names of those that are deleted, or may be.
pub async fn delete_created_namespaces(
    cluster: &Cluster,
    inventory: &Inventory,
    created: &[CreatedNamespace],
    result: &ActResult,
) -> Vec<String> {
    let mut deleted = Vec::new();
    let own_uids: BTreeSet<&str> = result.applied.values().map(|applied| applied.live.uid.as_str()).collect();
    for namespace in created {
        let foreign = find_foreign_in_namespace(cluster, inventory, &namespace.key.name, &own_uids).await;
        match foreign.map(|foreign| foreign.into_iter().next()) {
            Ok(None) => {}
            Ok(Some(foreign)) => {
                tracing::info!("kept {}, which contains {}", namespace.key, foreign.key);
                continue;
            }
            Err(error) => {
                tracing::info!("kept {}, whose content cannot be read: {error}", namespace.key);
                continue;
            }
        }
        deleted.push(namespace.key.name.clone());
        match cluster.delete(&namespace.resource, &namespace.key, &namespace.uid).await {
            Ok(_) => tracing::info!("deleted {}, which the failed pass had created", namespace.key),
            Err(error) => {
                tracing::warn!("could not delete {}, which the failed pass had created: {error}", namespace.key)
            }
        }
    }
    deleted
}
