//! Content of a namespace or a CRD that is to be deleted, and would be deleted with it.
//!
//! An object that any stack of the target state declares or owns keeps the namespace or the CRD. Foreign objects, which
//! belong to no stack, need an approval.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sindri_model::{ObjectKey, StackId};
use tokio::time::Instant;

use super::inventory::Inventory;
use super::plan::{Delete, ForeignObjects, Plan};
use super::stage::{DeleteOrder, Stage};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::namespaces::DEFAULT_NAMESPACE;
use crate::cluster::{ApiResource, Cluster, ClusterError, LiveObject};
use crate::target::claims::Claims;

/// Time limit of one search. A delete whose content is not known by then waits for the next pass.
const SEARCH_MAX: Duration = Duration::from_secs(30);
/// Kinds that a service mesh or a platform creates in every namespace. They hold no data of people.
const INJECTED_KINDS: [(&str, &str); 8] = [
    ("", "ConfigMap"),
    ("", "LimitRange"),
    ("", "ResourceQuota"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];

/// Content of a namespace or a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A stack of the target state declares this object, whether it exists or not, or owns it: nothing may be deleted.
    OfStack {
        /// Key of the object.
        key: Arc<ObjectKey>,
        /// Id of the stack.
        stack: StackId,
    },
    /// Objects that belong to no stack, or are to be kept.
    Foreign {
        /// Their keys, sorted.
        objects: Vec<Arc<ObjectKey>>,
        /// One whose annotation keeps it.
        kept: Option<Arc<ObjectKey>>,
    },
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
    /// Returns the foreign objects in every namespace and CRD that a plan deletes.
    ///
    /// Those that contain an object of a stack, or cannot be searched, are left out: the delete itself searches again, and
    /// fails because of it.
    pub async fn find_all_foreign(&self, plan: &Plan) -> ForeignObjects {
        let has_content = |delete: &&Delete| DeleteOrder::from_key(&delete.entry.key).has_content();
        let search = |delete| async move {
            match self.find(delete).await {
                Ok(Content::Foreign { objects, .. }) => Some((delete.entry.key.clone(), objects)),
                Ok(Content::OfStack { .. }) | Err(_) => None,
            }
        };
        let deletes: Vec<&Delete> = plan.deletes.iter().filter(has_content).collect();
        run_concurrently(deletes, search).await.into_iter().flatten().collect()
    }

    /// Returns the content that would be deleted with an object; only namespaces and CRDs have any.
    pub async fn find(&self, delete: &Delete) -> Result<Content, ClusterError> {
        let cluster = &self.cluster.with_deadline(Instant::now() + SEARCH_MAX);
        let key = &delete.entry.key;
        let (declared, foreign) = match Stage::from_key(key) {
            Stage::Namespaces => match self.claims.find_in_namespace(&key.name) {
                Some(declared) => (Some(declared), Vec::new()),
                None => (None, find_foreign_in_namespace(cluster, self.inventory, &key.name, &BTreeSet::new()).await?),
            },
            Stage::Crds => match read_custom_resource_type(cluster, delete).await? {
                Some(resource) => match self.claims.find_of_kind(&resource.group, &resource.kind) {
                    Some(declared) => (Some(declared), Vec::new()),
                    None => {
                        let mut objects = cluster.list_all(&Arc::new(resource)).await?;
                        objects.retain(|object| object.is_prune_disabled || self.inventory.get(&object.key).is_none());
                        (None, objects)
                    }
                },
                None => (None, Vec::new()),
            },
            _ => (None, Vec::new()),
        };
        let owned = || foreign.iter().find_map(|object| Some((object.key.clone(), self.find_owner(object)?)));
        Ok(match declared.or_else(owned) {
            Some((key, stack)) => Content::OfStack { key, stack },
            None => {
                let kept = foreign.iter().find(|object| object.is_prune_disabled).map(|object| object.key.clone());
                Content::Foreign { objects: sorted(foreign.into_iter().map(|object| object.key)), kept }
            }
        })
    }

    /// Returns the other stack of the target state that an object proves to belong to. Its bundle may not declare the object
    /// any more, or may be unreadable.
    fn find_owner(&self, object: &LiveObject) -> Option<StackId> {
        let owner: StackId = object.ownership.stack.as_deref()?.parse().ok()?;
        let is_original = object.ownership.proves_owner(owner, &object.key);
        (is_original && self.claims.has_stack(owner)).then_some(owner)
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
/// objects of the stack. Objects with an owner reference are left out, because they are deleted with their owner. A
/// PersistentVolumeClaim always counts, because its data would be deleted, and so does an object whose annotation keeps it.
pub async fn find_foreign_in_namespace(
    cluster: &Cluster,
    inventory: &Inventory,
    namespace: &str,
    own_uids: &BTreeSet<&str>,
) -> Result<Vec<LiveObject>, ClusterError> {
    let is_foreign = |object: &LiveObject| {
        let is_own = own_uids.contains(object.uid.as_str()) || inventory.get(&object.key).is_some();
        let is_claim = object.key.group.is_empty() && object.key.kind == "PersistentVolumeClaim";
        is_claim || object.is_prune_disabled || !is_own && !object.has_owner_reference && !is_made_by_cluster(object)
    };
    let mut resources = cluster.list_resources().await?;
    resources.retain(|resource| resource.namespaced);
    let list = async |resource: Arc<ApiResource>| {
        let mut objects = cluster.list_namespace(&resource, namespace).await?;
        objects.retain(is_foreign);
        if !objects.is_empty() && is_injected_kind(&resource) {
            let injected = find_injected_names(cluster, &resource).await?;
            objects.retain(|object| !injected.contains(&object.key.name));
        }
        Ok(objects)
    };
    let mut foreign = Vec::new();
    let listed: Vec<Result<Vec<LiveObject>, ClusterError>> = run_concurrently(resources, list).await;
    for objects in listed {
        foreign.extend(objects?);
    }
    Ok(foreign)
}

fn is_injected_kind(resource: &ApiResource) -> bool {
    INJECTED_KINDS.contains(&(resource.group.as_str(), resource.kind.as_str()))
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
    // The same object is listed in every version of its group.
    let keys: BTreeSet<Arc<ObjectKey>> = keys.collect();
    keys.into_iter().collect()
}

/// Returns true for objects that the control plane creates by itself, such as Endpoints and the default ServiceAccount.
fn is_made_by_cluster(object: &LiveObject) -> bool {
    match (object.key.group.as_str(), object.key.kind.as_str(), object.key.name.as_str()) {
        ("" | "events.k8s.io", "Event", _)
        | ("", "ServiceAccount", "default")
        | ("", "ConfigMap", "kube-root-ca.crt") => true,
        _ => object.is_made_by_control_plane,
    }
}
