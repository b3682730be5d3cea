//! What of others lives in a namespace, or is an instance of a definition: deleting those would delete it too.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::ObjectKey;

use crate::cluster::{Cluster, ClusterError, LiveObject, Resource};
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Delete, Stage};

/// More are not looked for: these are reason enough.
const STRANGERS_MAX: usize = 100;

/// What else would go with an object, in order.
pub async fn strangers(
    cluster: &Cluster,
    inventory: &Inventory,
    delete: &Delete,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let key = &delete.entry.key;
    match Stage::of(key) {
        Stage::Namespaces => in_namespace(cluster, inventory, &key.name, &BTreeSet::new()).await,
        Stage::Definitions => of_definition(cluster, inventory, delete).await,
        _ => Ok(Vec::new()),
    }
}

async fn of_definition(
    cluster: &Cluster,
    inventory: &Inventory,
    delete: &Delete,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let definition = cluster.read(&delete.entry.resource, &delete.entry.key).await?.unwrap_or_default();
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let served = versions.iter().find(|version| version["served"] == true);
    let version = served.and_then(|version| version["name"].as_str()).unwrap_or_default();
    let Some(kind) = Resource::defined_by(&definition, version) else { return Ok(Vec::new()) };
    let instances = cluster.instances(&Arc::new(kind)).await?;
    let strangers = instances.into_iter().map(|object| object.key).filter(|key| inventory.get(key).is_none());
    Ok(sorted(strangers))
}

/// Objects in a namespace that neither this stack nor the cluster itself put there. What another object owns comes and
/// goes with its owner.
pub async fn in_namespace(
    cluster: &Cluster,
    inventory: &Inventory,
    namespace: &str,
    ours: &BTreeSet<&str>,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let is_strange = |object: &LiveObject| {
        let is_known = ours.contains(object.uid.as_str()) || inventory.get(&object.key).is_some();
        !is_known && !object.owned && !is_made_by_the_cluster(&object.key)
    };
    let mut strangers = Vec::new();
    for resource in cluster.listable_resources().await?.iter().filter(|resource| resource.namespaced) {
        let objects = cluster.in_namespace(resource, namespace).await?;
        strangers.extend(objects.into_iter().filter(is_strange).map(|object| object.key));
        if strangers.len() >= STRANGERS_MAX {
            break;
        }
    }
    Ok(sorted(strangers.into_iter()))
}

fn sorted(keys: impl Iterator<Item = Arc<ObjectKey>>) -> Vec<Arc<ObjectKey>> {
    let keys: BTreeSet<Arc<ObjectKey>> = keys.collect();
    keys.into_iter().take(STRANGERS_MAX).collect()
}

/// What every namespace gets from the cluster itself.
fn is_made_by_the_cluster(key: &ObjectKey) -> bool {
    let of_core = key.group.is_empty();
    key.kind == "Event"
        || (of_core && key.kind == "ServiceAccount" && key.name == "default")
        || (of_core && key.kind == "ConfigMap" && key.name == "kube-root-ca.crt")
}
