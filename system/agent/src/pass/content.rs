//! Content of a namespace or a CRD that is to be deleted, and would be deleted with it.
//!
//! An object that any stack declares keeps the namespace or the CRD. Foreign objects, which do not belong to the stack, need
//! an approval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sindri_model::{ObjectKey, StackId};
use tokio::time::Instant;

use super::inventory::Inventory;
use super::plan::{Delete, DeleteOrder, ForeignObjects, Plan, Stage};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::namespaces::DEFAULT_NAMESPACE;
use crate::cluster::{ApiResource, Cluster, ClusterError, LiveObject};
use crate::target::claims::Claims;

/// Number of foreign objects that are listed: fewer are enough to hold a delete back.
const FOREIGN_MAX: usize = 100;
/// Time limit of one search. A delete whose content is not known by then waits for the next pass.
const SEARCH_MAX: Duration = Duration::from_secs(30);

/// Object that a stack declares, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredContent {
    /// Key of the object.
    pub key: Arc<ObjectKey>,
    /// Id of the stack.
    pub stack: StackId,
}

/// Searches the content of namespaces and CRDs.
#[derive(Clone, Copy)]
pub struct ContentSearch<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Inventory of the stack.
    pub inventory: &'a Inventory,
    /// Claims of all stacks.
    pub claims: &'a Claims,
}

impl ContentSearch<'_> {
    /// Returns a client whose requests end with the time of a search.
    fn limited(&self) -> Cluster {
        self.cluster.with_deadline(Instant::now() + SEARCH_MAX)
    }

    /// Returns the foreign objects in every namespace and CRD that a plan deletes.
    ///
    /// Those that contain a declared object, or cannot be searched, are left out: the delete itself searches again, and
    /// fails because of it.
    pub async fn find_all_foreign(&self, plan: &Plan) -> ForeignObjects {
        let has_content = |delete: &&Delete| DeleteOrder::from_key(&delete.entry.key).has_content();
        let search = |delete| async move {
            match self.find_declared(delete).await {
                Ok(None) => Some((delete.entry.key.clone(), self.find_foreign(delete).await.ok()?)),
                Ok(Some(_)) | Err(_) => None,
            }
        };
        let deletes: Vec<&Delete> = plan.deletes.iter().filter(has_content).collect();
        run_concurrently(deletes, search).await.into_iter().flatten().collect()
    }

    /// Returns an object that a stack declares in a namespace, or of the kind of a CRD, that is to be deleted.
    pub async fn find_declared(&self, delete: &Delete) -> Result<Option<DeclaredContent>, ClusterError> {
        let found = match Stage::from_key(&delete.entry.key) {
            Stage::Namespaces => self.claims.find_in_namespace(&delete.entry.key.name),
            Stage::Crds => match read_custom_resource_type(&self.limited(), delete).await? {
                Some(resource) => self.claims.find_of_kind(&resource.group, &resource.kind),
                None => None,
            },
            _ => None,
        };
        Ok(found.map(|(key, stack)| DeclaredContent { key, stack }))
    }

    /// Returns the foreign objects that would be deleted with a namespace or a CRD, sorted by key.
    pub async fn find_foreign(&self, delete: &Delete) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
        let limited = self.limited();
        match Stage::from_key(&delete.entry.key) {
            Stage::Namespaces => {
                let namespace = &delete.entry.key.name;
                find_foreign_in_namespace(&limited, self.inventory, namespace, &BTreeSet::new()).await
            }
            Stage::Crds => {
                let Some(resource) = read_custom_resource_type(&limited, delete).await? else { return Ok(Vec::new()) };
                let objects = limited.list_all(&Arc::new(resource)).await?.into_iter();
                let foreign = objects.map(|object| object.key).filter(|key| self.inventory.get(key).is_none());
                Ok(sorted(foreign))
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// Returns the type of the custom resources of a CRD, in a version that is served; `None` if none is.
async fn read_custom_resource_type(cluster: &Cluster, delete: &Delete) -> Result<Option<ApiResource>, ClusterError> {
    let crd: Value = cluster.get(&delete.entry.resource, &delete.entry.key).await?.unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let served = versions.iter().find(|version| version["served"] == true);
    let version = served.and_then(|version| version["name"].as_str()).unwrap_or_default();
    Ok(ApiResource::from_crd(&crd, version))
}

/// Returns the objects in a namespace that belong neither to this stack nor to the cluster itself; `own_uids` are further
/// objects of the stack. Objects with an owner reference are left out, because they are deleted with their owner.
pub async fn find_foreign_in_namespace(
    cluster: &Cluster,
    inventory: &Inventory,
    namespace: &str,
    own_uids: &BTreeSet<&str>,
) -> Result<Vec<Arc<ObjectKey>>, ClusterError> {
    let is_foreign = |object: &LiveObject| {
        let is_own = own_uids.contains(object.uid.as_str()) || inventory.get(&object.key).is_some();
        !is_own && !object.has_owner_reference && !is_made_by_cluster(object)
    };
    let mut resources = cluster.list_resources().await?;
    resources.retain(|resource| resource.namespaced);
    let list = |resource: Arc<ApiResource>| async move {
        let objects = cluster.list_namespace(&resource, namespace).await?;
        Ok((resource, objects))
    };
    let mut foreign: BTreeMap<Arc<ApiResource>, Vec<LiveObject>> = BTreeMap::new();
    let listed: Vec<Result<(Arc<ApiResource>, Vec<LiveObject>), ClusterError>> =
        run_concurrently(resources, list).await;
    for listed in listed {
        let (resource, objects) = listed?;
        let objects: Vec<LiveObject> = objects.into_iter().filter(is_foreign).collect();
        if !objects.is_empty() {
            foreign.insert(resource, objects);
        }
    }
    let mut keys = Vec::new();
    for (resource, objects) in foreign {
        let injected = find_injected_names(cluster, &resource).await?;
        keys.extend(objects.into_iter().map(|object| object.key).filter(|key| !injected.contains(&key.name)));
    }
    Ok(sorted(keys.into_iter()))
}

/// Returns the names of the objects of a type that a service mesh or a platform creates in every namespace: those that both
/// the agent's own namespace and the default namespace have.
async fn find_injected_names(cluster: &Cluster, resource: &Arc<ApiResource>) -> Result<BTreeSet<String>, ClusterError> {
    let names = async |namespace: &str| -> Result<BTreeSet<String>, ClusterError> {
        let objects = cluster.list_namespace(resource, namespace).await?;
        Ok(objects.into_iter().map(|object| object.key.name.clone()).collect())
    };
    let own = names(cluster.agent_namespace()).await?;
    if own.is_empty() {
        return Ok(own);
    }
    Ok(own.intersection(&names(DEFAULT_NAMESPACE).await?).cloned().collect())
}

fn sorted(keys: impl Iterator<Item = Arc<ObjectKey>>) -> Vec<Arc<ObjectKey>> {
    let keys: BTreeSet<Arc<ObjectKey>> = keys.collect();
    keys.into_iter().take(FOREIGN_MAX).collect()
}

/// Returns true for objects that the control plane creates by itself, such as Endpoints and the default ServiceAccount.
/// The claims that it creates for a StatefulSet hold data of people, and do not count.
fn is_made_by_cluster(object: &LiveObject) -> bool {
    match (object.key.kind.as_str(), object.key.name.as_str()) {
        ("Event", _) | ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt") => true,
        ("PersistentVolumeClaim", _) => false,
        _ => object.is_made_by_control_plane,
    }
}
