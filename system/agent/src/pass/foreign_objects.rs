//! Foreign objects: objects in a namespace, or custom resources of a CRD, that do not belong to the stack. Deleting the
//! namespace or the CRD would delete them too.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use sindri_model::ObjectKey;

use super::desired::DesiredStack;
use super::inventory::Inventory;
use super::plan::{Delete, ForeignObjects, Hold, Plan, Stage, find_holds};
use crate::cluster::{ApiResource, Cluster, ClusterError, LiveObject};
use crate::settings::Brake;

/// Number of foreign objects after which the search ends: fewer are enough to hold a delete back.
const FOREIGN_MAX: usize = 100;

/// Returns the deletions of a plan that wait for an approval, after searching for foreign objects.
pub async fn search_holds(
    cluster: &Cluster,
    desired: &DesiredStack,
    inventory: &Inventory,
    plan: &Plan,
    brake: &Brake,
) -> Vec<Hold> {
    let mut foreign = ForeignObjects::new();
    let has_content = |key: &ObjectKey| Stage::from_key(key).precedes_validation();
    for delete in plan.deletes.iter().filter(|delete| brake.is_on && has_content(&delete.entry.key)) {
        // After a failed search the delete itself searches again, and fails if that fails too.
        if let Ok(objects) = find_foreign_objects(cluster, inventory, delete).await {
            foreign.insert(delete.entry.key.clone(), objects);
        }
    }
    find_holds(plan, inventory, &desired.goal, &foreign, brake)
}

/// Returns the foreign objects that would be deleted with an object, sorted by key.
pub async fn find_foreign_objects(
    cluster: &Cluster,
    inventory: &Inventory,
    delete: &Delete,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let key = &delete.entry.key;
    match Stage::from_key(key) {
        Stage::Namespaces => find_in_namespace(cluster, inventory, &key.name, &BTreeSet::new()).await,
        Stage::Crds => find_custom_resources(cluster, inventory, delete).await,
        _ => Ok(Vec::new()),
    }
}

async fn find_custom_resources(
    cluster: &Cluster,
    inventory: &Inventory,
    delete: &Delete,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let crd: Value = cluster.get(&delete.entry.resource, &delete.entry.key).await?.unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let served = versions.iter().find(|version| version["served"] == true);
    let version = served.and_then(|version| version["name"].as_str()).unwrap_or_default();
    let Some(resource) = ApiResource::from_crd(&crd, version) else { return Ok(Vec::new()) };
    let custom_resources = cluster.list_all(&Arc::new(resource)).await?;
    Ok(sorted(custom_resources.into_iter().map(|object| object.key).filter(|key| inventory.get(key).is_none())))
}

/// Returns the objects in a namespace that neither this stack nor the cluster itself created; `own_uids` are further objects
/// of the stack. Objects with an owner reference are left out, because they are deleted with their owner.
pub async fn find_in_namespace(
    cluster: &Cluster,
    inventory: &Inventory,
    namespace: &str,
    own_uids: &BTreeSet<&str>,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let is_foreign = |object: &LiveObject| {
        let is_own = own_uids.contains(object.uid.as_str()) || inventory.get(&object.key).is_some();
        !is_own && !object.has_owner_reference && !is_created_by_cluster(&object.key)
    };
    let mut foreign = Vec::new();
    for resource in cluster.list_resources().await?.iter().filter(|resource| resource.namespaced) {
        let objects = cluster.list_namespace(resource, namespace).await?;
        foreign.extend(objects.into_iter().filter(is_foreign).map(|object| object.key));
        if foreign.len() >= FOREIGN_MAX {
            break;
        }
    }
    Ok(sorted(foreign.into_iter()))
}

fn sorted(keys: impl Iterator<Item = Arc<ObjectKey>>) -> Vec<Arc<ObjectKey>> {
    let keys: BTreeSet<Arc<ObjectKey>> = keys.collect();
    keys.into_iter().take(FOREIGN_MAX).collect()
}

/// Returns true for objects that the control plane creates in every namespace.
fn is_created_by_cluster(key: &ObjectKey) -> bool {
    let is_core = key.group.is_empty();
    key.kind == "Event"
        || (is_core && key.kind == "ServiceAccount" && key.name == "default")
        || (is_core && key.kind == "ConfigMap" && key.name == "kube-root-ca.crt")
}
