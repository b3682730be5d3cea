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
use super::plan::{Delete, ForeignObjects, Plan, is_proved};
use super::stage::Stage;
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::namespaces::DEFAULT_NAMESPACE;
use crate::cluster::{ApiResource, Cluster, ClusterError, LiveObject, Owner};
use crate::target::claims::Claims;

/// Time limit of one search, after which what was listed first may not be true any more. A delete whose content is not known by
/// then waits for the next pass.
pub const SEARCH_MAX: Duration = Duration::from_secs(15);
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
    /// The content cannot be listed: a CRD exists, and none of its versions is served.
    Unknown,
}

/// Searches the content of namespaces and CRDs.
#[derive(Clone, Copy)]
pub struct ContentSearch<'a> {
    /// Client of the cluster.
    pub cluster: &'a Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack.
    pub inventory: &'a Inventory,
    /// Returns the claims of all stacks as they are now.
    pub claims: &'a (dyn Fn() -> Arc<Claims> + Sync),
}

impl ContentSearch<'_> {
    /// Returns the foreign objects in every namespace and CRD that a plan deletes.
    ///
    /// Those that contain an object of a stack, or cannot be searched, are left out: the delete itself searches again, and
    /// fails because of it.
    pub async fn find_all_foreign(&self, plan: &Plan) -> ForeignObjects {
        let has_content = |delete: &&Delete| delete.order.has_content();
        let search = |delete| async move {
            match self.find(delete).await {
                Ok(Content::Foreign { objects, .. }) => Some((delete.entry.key.clone(), objects)),
                Ok(Content::OfStack { .. } | Content::Unknown) | Err(_) => None,
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
            Stage::Namespaces => match self.find_declared_inside(cluster, &key.name).await? {
                Some(declared) => (Some(declared), Vec::new()),
                None => {
                    let is_own = |object: &LiveObject| self.is_own(object);
                    let foreign = find_foreign_in_namespace(cluster, &key.name, self.inventory, is_own).await?;
                    // A stack may have declared an object there during the search.
                    (self.find_declared_inside(cluster, &key.name).await?, foreign)
                }
            },
            Stage::Crds => match cluster.get(&delete.entry.resource, key).await? {
                Some(crd) => match self.find_declared_custom_resource(&crd) {
                    Some(declared) => (Some(declared), Vec::new()),
                    None => {
                        let Some(resource) = find_custom_resource_type(&crd) else { return Ok(Content::Unknown) };
                        let mut objects = cluster.list_all(&Arc::new(resource)).await?;
                        objects.retain(|object| object.is_prune_disabled || !self.is_own(object));
                        (self.find_declared_custom_resource(&crd), objects)
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

    /// Returns true if an object is proved to belong to this stack: another client may have created it anew under the name of
    /// an entry.
    fn is_own(&self, object: &LiveObject) -> bool {
        self.inventory.get(&object.key).is_some_and(|entry| is_proved(self.stack, entry, object))
    }

    /// Returns an object that a stack declares in a namespace, and the stack.
    async fn find_declared_inside(
        &self,
        cluster: &Cluster,
        namespace: &str,
    ) -> Result<Option<(Arc<ObjectKey>, StackId)>, ClusterError> {
        let mut declared = (self.claims)().list_in_namespace(namespace);
        if !declared.is_empty() {
            // The server ignores the namespace of a cluster-scoped object, which some charts name.
            let resources = cluster.list_all_resources().await?;
            let is_cluster_scoped = |key: &ObjectKey| {
                let is_of_kind = |it: &&Arc<ApiResource>| (&it.group, &it.kind) == (&key.group, &key.kind);
                resources.iter().find(is_of_kind).is_some_and(|resource| !resource.namespaced)
            };
            declared.retain(|(key, _)| !is_cluster_scoped(key));
        }
        Ok(declared.into_iter().next())
    }

    /// Returns a custom resource of a CRD that a stack declares, and the stack.
    fn find_declared_custom_resource(&self, crd: &Value) -> Option<(Arc<ObjectKey>, StackId)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (self.claims)().find_of_kind(&text(&crd["spec"]["group"]), &text(&crd["spec"]["names"]["kind"]))
    }

    /// Returns the other stack of the target state that an object proves to belong to. Its bundle may not declare the object
    /// any more, or may be unreadable.
    fn find_owner(&self, object: &LiveObject) -> Option<StackId> {
        let owner: StackId = object.ownership.stack.as_deref()?.parse().ok()?;
        let is_original = object.ownership.proves_owner(owner, &object.key);
        (is_original && (self.claims)().has_stack(owner)).then_some(owner)
    }
}

/// Returns the type of the custom resources of a CRD, in a version that is served; `None` if none is.
fn find_custom_resource_type(crd: &Value) -> Option<ApiResource> {
    let versions = crd["spec"]["versions"].as_array()?;
    let served = versions.iter().find(|version| version["served"] == true)?;
    ApiResource::from_crd(crd, served["name"].as_str()?)
}

/// Returns the objects in a namespace that belong neither to the stack, as `is_own` tells, nor to the cluster itself. Objects
/// that belong to another one in the same namespace are left out, because they are deleted with it, and the other one counts.
/// The inventory has the Services that the stack deleted in this pass: their Endpoints may still exist. A
/// PersistentVolumeClaim always counts, because its data would be deleted, and so does an object whose annotation keeps it.
pub async fn find_foreign_in_namespace(
    cluster: &Cluster,
    namespace: &str,
    inventory: &Inventory,
    is_own: impl Fn(&LiveObject) -> bool,
) -> Result<Vec<LiveObject>, ClusterError> {
    let mut resources = cluster.list_all_resources().await?;
    resources.retain(|resource| resource.namespaced);
    let kinds = resources.iter().map(|resource| (resource.group.clone(), resource.kind.clone())).collect();
    let list = async |resource: Arc<ApiResource>| cluster.list_namespace(&resource, namespace).await;
    let listed: Vec<Result<Vec<LiveObject>, ClusterError>> = run_concurrently(resources, list).await;
    let listed: Vec<Vec<LiveObject>> = listed.into_iter().collect::<Result<_, _>>()?;
    let neighbours = Neighbours::new(kinds, listed.iter().flatten(), inventory);
    let keeps = |object: &LiveObject| neighbours.is_counted(object, is_own(object));
    let foreign = listed.into_iter().map(|objects| objects.into_iter().filter(keeps).collect());
    let foreign: Vec<Vec<LiveObject>> = foreign.filter(|objects: &Vec<LiveObject>| !objects.is_empty()).collect();
    let leave_out_injected = async |mut objects: Vec<LiveObject>| {
        if let Some(resource) = objects.first().map(|object| object.resource.clone()).filter(|it| is_injected_kind(it))
        {
            let injected = find_injected_names(cluster, &resource).await?;
            objects.retain(|object| !injected.contains(&object.key.name));
        }
        Ok(objects)
    };
    let foreign: Vec<Result<Vec<LiveObject>, ClusterError>> = run_concurrently(foreign, leave_out_injected).await;
    Ok(foreign.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// All objects of a namespace, to tell which of them belong to others of them.
struct Neighbours {
    /// Groups and kinds of objects in namespaces.
    kinds: BTreeSet<(String, String)>,
    uids: BTreeSet<String>,
    /// UIDs of the objects whose owners, and the owners of those, end at an object without an owner in the namespace. Those that own
    /// each other in a circle do not.
    rooted: BTreeSet<String>,
    /// Services, also those that the stack has just deleted.
    services: BTreeSet<Arc<ObjectKey>>,
}

impl Neighbours {
    fn new<'a>(
        kinds: BTreeSet<(String, String)>,
        objects: impl Iterator<Item = &'a LiveObject> + Clone,
        inventory: &Inventory,
    ) -> Self {
        let keys = objects.clone().map(|object| &object.key).chain(inventory.entries().map(|entry| &entry.key));
        let is_service = |key: &&Arc<ObjectKey>| key.group.is_empty() && key.kind == "Service";
        let services = keys.filter(is_service).cloned().collect();
        let uids: BTreeSet<String> = objects.clone().map(|object| object.uid.clone()).collect();
        let is_inside = |owner: &Owner| uids.contains(&owner.uid);
        let (mut owned, roots): (Vec<&LiveObject>, Vec<&LiveObject>) =
            objects.partition(|object| object.owners.iter().any(is_inside));
        let mut rooted: BTreeSet<String> = roots.into_iter().map(|object| object.uid.clone()).collect();
        loop {
            let is_rooted = |object: &LiveObject| object.owners.iter().any(|owner| rooted.contains(&owner.uid));
            let (found, rest): (Vec<_>, Vec<_>) = owned.into_iter().partition(|object| is_rooted(object));
            if found.is_empty() {
                return Self { kinds, uids, rooted, services };
            }
            rooted.extend(found.into_iter().map(|object| object.uid.clone()));
            owned = rest;
        }
    }

    /// Returns true if an object counts.
    fn is_counted(&self, object: &LiveObject, is_own: bool) -> bool {
        let is_claim = object.key.group.is_empty() && object.key.kind == "PersistentVolumeClaim";
        is_claim || object.is_prune_disabled || !is_own && !is_made_by_cluster(object) && !self.is_dependent(object)
    }

    /// Returns true for an object that is deleted together with another one of the namespace.
    fn is_dependent(&self, object: &LiveObject) -> bool {
        let owners = &object.owners;
        // An owner is in the namespace of the object or cluster-scoped. If none is left, the garbage collector deletes the
        // object. An orphaned one has no owner references, regardless of the controller that created it.
        let is_namespaced = |owner: &Owner| self.kinds.contains(&(owner.group.clone(), owner.kind.clone()));
        owners.iter().any(|owner| self.rooted.contains(&owner.uid))
            || !owners.is_empty() && owners.iter().all(is_namespaced)
            || object.service_account_uid.as_ref().is_some_and(|uid| self.uids.contains(uid))
            || self.is_of_service(&object.key)
    }

    /// Returns true for the Endpoints of a Service. They have no owner reference, and the field manager is that of the program in
    /// which the controllers run.
    fn is_of_service(&self, key: &ObjectKey) -> bool {
        let service = || ObjectKey { kind: "Service".to_owned(), ..key.clone() };
        key.group.is_empty() && key.kind == "Endpoints" && self.services.contains(&service())
    }
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

/// Returns true for objects that the control plane creates in every namespace by itself. The field manager of an object
/// is not its owner: a controller also creates the ReplicaSets and Jobs of others, which may be orphaned later.
fn is_made_by_cluster(object: &LiveObject) -> bool {
    matches!(
        (object.key.group.as_str(), object.key.kind.as_str(), object.key.name.as_str()),
        ("" | "events.k8s.io", "Event", _) | ("", "ServiceAccount", "default") | ("", "ConfigMap", "kube-root-ca.crt")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ownership::Ownership;
    use crate::pass::inventory::Entry;

    fn resource(group: &str, kind: &str) -> Arc<ApiResource> {
        let (group, version, kind) = (group.to_owned(), "v1".to_owned(), kind.to_owned());
        Arc::new(ApiResource {
            group,
            version,
            plural: format!("{}s", kind.to_lowercase()),
            kind,
            namespaced: true,
            is_aggregated: false,
        })
    }

    fn object(group: &str, kind: &str, owners: &[(&str, &str, &str)]) -> LiveObject {
        let resource = resource(group, kind);
        let to_owner = |(group, kind, uid): &(&str, &str, &str)| Owner {
            group: (*group).to_owned(),
            kind: (*kind).to_owned(),
            uid: (*uid).to_owned(),
        };
        LiveObject {
            key: Arc::new(resource.object_key(Some("team"), "web")),
            resource,
            uid: "7".to_owned(),
            resource_version: "1".to_owned(),
            applied_fields: None,
            ownership: Ownership::default(),
            owners: owners.iter().map(to_owner).collect(),
            service_account_uid: None,
            is_terminating: false,
            is_prune_disabled: false,
        }
    }

    fn neighbours(objects: &[LiveObject], inventory: &Inventory) -> Neighbours {
        let kinds = [("", "Secret"), ("apps", "Deployment"), ("apps", "ReplicaSet")];
        let kinds = kinds.map(|(group, kind)| (group.to_owned(), kind.to_owned()));
        Neighbours::new(BTreeSet::from(kinds), objects.iter(), inventory)
    }

    #[test]
    fn an_object_counts_unless_it_is_deleted_with_another_one_of_the_namespace() {
        let owner = LiveObject { uid: "8".to_owned(), ..object("shop.example", "Widget", &[]) };
        let neighbours = neighbours(&[owner], &Inventory::default());
        let is_counted = |object: &LiveObject| neighbours.is_counted(object, false);
        assert!(is_counted(&object("", "Secret", &[])), "it belongs to another client");
        assert!(!neighbours.is_counted(&object("", "Secret", &[]), true), "it belongs to the stack");
        assert!(!is_counted(&object("", "Secret", &[("shop.example", "Widget", "8")])), "its owner counts");
        let cluster_scoped = ("shop.example", "Fleet", "9");
        assert!(is_counted(&object("", "Secret", &[cluster_scoped])), "its owner is cluster-scoped, and stays");
        let gone = ("apps", "Deployment", "9");
        assert!(!is_counted(&object("apps", "ReplicaSet", &[gone])), "its only owner is gone, so it is collected");
        assert!(is_counted(&object("apps", "ReplicaSet", &[gone, cluster_scoped])), "one of its owners stays");
        let token = |uid: &str| LiveObject { service_account_uid: Some(uid.to_owned()), ..object("", "Secret", &[]) };
        assert!(!is_counted(&token("8")), "a token of a ServiceAccount of the namespace");
        assert!(is_counted(&token("9")), "another token");
    }

    #[test]
    fn objects_that_own_each_other_in_a_circle_count() {
        let uid = |uid: &str, owner: &str| LiveObject {
            uid: uid.to_owned(),
            ..object("shop.example", "Widget", &[("shop.example", "Widget", owner)])
        };
        let objects = [uid("1", "2"), uid("2", "1"), uid("3", "3"), uid("4", "5"), uid("5", "6")];
        let root = LiveObject { uid: "6".to_owned(), ..object("shop.example", "Widget", &[]) };
        let neighbours = neighbours(&[&objects[..], &[root]].concat(), &Inventory::default());
        let counted: Vec<bool> = objects.iter().map(|object| neighbours.is_counted(object, false)).collect();
        assert_eq!(counted, [true, true, true, false, false]);
    }

    #[test]
    fn orphaned_workloads_count() {
        let neighbours = neighbours(&[], &Inventory::default());
        for (group, kind) in [("apps", "ReplicaSet"), ("apps", "ControllerRevision"), ("batch", "Job"), ("", "Pod")] {
            assert!(neighbours.is_counted(&object(group, kind, &[]), false), "{kind}");
        }
    }

    #[test]
    fn endpoints_belong_to_the_service_of_their_name() {
        let (endpoints, service) = (object("", "Endpoints", &[]), object("", "Service", &[]));
        let mut inventory = Inventory::default();
        assert!(neighbours(&[], &inventory).is_counted(&endpoints, false), "without a Service");
        assert!(!neighbours(std::slice::from_ref(&service), &inventory).is_counted(&endpoints, false));
        inventory.insert(Entry::new(service.key.clone(), service.resource));
        assert!(!neighbours(&[], &inventory).is_counted(&endpoints, false), "its Service was just deleted");
    }
}
