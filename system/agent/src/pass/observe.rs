//! The first step of a pass: reads the live objects of a stack.
//!
//! Every failed read is an error. Nothing is concluded from a response that did not arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sindri_model::{ObjectKey, StackId};

use super::desired::DesiredStack;
use super::inventory::{Entry, Inventory};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::reflector::Reflector;
use crate::cluster::{ApiResource, Cluster, ClusterError, LiveObject};

/// Live objects that a plan needs, by key. A key that was looked up and is missing here does not exist.
pub type LiveSet = BTreeMap<Arc<ObjectKey>, LiveObject>;

/// Reads the live objects of a stack: those that carry the ownership label, and those that only the inventory knows. A
/// declared object that is in neither is new, or not owned yet.
pub async fn read_live_objects(
    cluster: &Cluster,
    reflector: &Reflector,
    desired: &DesiredStack,
    inventory: &Inventory,
) -> Result<LiveSet, ClusterError> {
    let mut needed: BTreeMap<&ObjectKey, &Arc<ApiResource>> = BTreeMap::new();
    needed.extend(inventory.entries().map(|entry| (&*entry.key, &entry.resource)));
    needed.extend(desired.goal.objects().iter().map(|object| (&*object.key, &object.resource)));
    let mut live = LiveSet::new();
    let mut forbidden: BTreeSet<&Arc<ApiResource>> = BTreeSet::new();
    let mut resources: BTreeSet<&Arc<ApiResource>> = BTreeSet::new();
    // Inserted one by one: collecting would first sort thousands of equal values.
    resources.extend(needed.values());
    for known in resources {
        // A type that no version serves any more has no objects.
        let Some(resource) = cluster.find_resource_in_any_version(known).await? else { continue };
        let is_needed = |object: &LiveObject| needed.contains_key(&*object.key);
        let labelled = match reflector.select(&resource, is_needed) {
            Some(labelled) => labelled,
            None => match cluster.list_labelled(&resource).await {
                Ok((listed, _)) => listed.into_iter().filter(is_needed).collect(),
                // Reading single objects may still be permitted; each is read below.
                Err(error) if error.is_forbidden() => {
                    forbidden.insert(known);
                    Vec::new()
                }
                Err(error) if error.is_not_found() => Vec::new(),
                Err(error) => return Err(error),
            },
        };
        live.extend(labelled.into_iter().map(|object| (object.key.clone(), object)));
    }
    let is_unread = |key: &ObjectKey, known: &Arc<ApiResource>| {
        !live.contains_key(key) && (forbidden.contains(known) || inventory.get(key).is_some())
    };
    let unread = needed.into_iter().filter(|(key, known)| is_unread(key, known));
    let unread: Vec<(&ObjectKey, &ApiResource)> = unread.map(|(key, known)| (key, &**known)).collect();
    let read = |(key, known)| async move {
        match cluster.find_resource_in_any_version(known).await? {
            Some(resource) => cluster.get_metadata(&resource, key).await,
            None => Ok(None),
        }
    };
    let read: Vec<Result<Option<LiveObject>, ClusterError>> = run_concurrently(unread, read).await;
    for object in read {
        live.extend(object?.map(|object| (object.key.clone(), object)));
    }
    Ok(live)
}

/// Searches the whole cluster for objects that prove to belong to a stack. Used when the inventory is empty: another client
/// may have deleted it, and a removal must not be confirmed because of that.
pub async fn find_stack_objects(cluster: &Cluster, stack: StackId) -> Result<Vec<Entry>, ClusterError> {
    let mut entries = Vec::new();
    for resource in cluster.list_resources().await? {
        for object in cluster.list_stack_objects(&resource, stack).await? {
            if object.ownership.proves_owner(stack, &object.key) {
                entries.push(Entry { key: object.key, resource: object.resource, uid: Some(object.uid) });
            }
        }
    }
    Ok(entries)
}
