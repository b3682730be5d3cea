//! The first step of a pass: reads the live objects of a stack.
//!
//! Nothing is concluded from a response that did not arrive: objects of a kind that cannot be read are left alone, and
//! reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sindri_model::{ObjectKey, StackId};
use tokio::time::Instant;

use super::desired::DesiredStack;
use super::inventory::{Entry, Inventory};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::reflector::Reflector;
use crate::cluster::{ApiResource, Cluster, ClusterError, LiveObject};

/// Live objects that a plan needs, by key. A key that was looked up and is missing here does not exist.
pub type LiveSet = BTreeMap<Arc<ObjectKey>, LiveObject>;

/// Time limit of the reads of one pass. Objects of a kind that cannot be read until then wait for the next pass.
const READ_MAX: Duration = Duration::from_secs(30);

/// Result of observing a stack.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Live objects.
    pub live: LiveSet,
    /// Kinds whose objects could not be read. Nothing is concluded about them: they are neither written nor deleted.
    pub unreadable: UnreadableKinds,
}

/// Kinds whose objects could not be read, each with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadableKinds(BTreeMap<(String, String), ClusterError>);

impl UnreadableKinds {
    /// Returns true if objects of this kind could not be read.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        // Usually there is none, and a lookup would copy the key.
        !self.0.is_empty() && self.0.contains_key(&(key.group.clone(), key.kind.clone()))
    }

    /// Returns true if every kind could be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the reasons.
    pub fn into_errors(self) -> Vec<ClusterError> {
        self.0.into_values().collect()
    }

    fn insert(&mut self, resource: &ApiResource, error: ClusterError) {
        self.0.entry((resource.group.clone(), resource.kind.clone())).or_insert(error);
    }
}

/// Labelled objects of one resource type.
enum Labelled {
    Objects(Vec<LiveObject>),
    /// Listing is not permitted. Reading single objects may be.
    Forbidden,
}

/// Reads the live objects of a stack: those that carry the ownership label, and those that only the inventory knows. A
/// declared object that is in neither is new, or not owned yet.
pub async fn read_live_objects(
    cluster: &Cluster,
    reflector: &Reflector,
    desired: &DesiredStack,
    inventory: &Inventory,
) -> Observation {
    let cluster = &cluster.with_deadline(Instant::now() + READ_MAX);
    let mut needed: BTreeMap<&ObjectKey, &Arc<ApiResource>> = BTreeMap::new();
    needed.extend(inventory.entries().map(|entry| (&*entry.key, &entry.resource)));
    needed.extend(desired.goal.objects().iter().map(|object| (&*object.key, &object.resource)));
    let mut resources: BTreeSet<&Arc<ApiResource>> = BTreeSet::new();
    // Inserted one by one: collecting would first sort thousands of equal values.
    resources.extend(needed.values());
    let is_needed = |object: &LiveObject| needed.contains_key(&*object.key);
    let list = async |known| (known, list_labelled(cluster, reflector, known, is_needed).await);
    let mut observed = Observation::default();
    let mut forbidden: BTreeSet<&Arc<ApiResource>> = BTreeSet::new();
    for (known, listed) in run_concurrently(resources.into_iter().collect(), list).await {
        match listed {
            Ok(Labelled::Objects(objects)) => {
                observed.live.extend(objects.into_iter().map(|object| (object.key.clone(), object)));
            }
            Ok(Labelled::Forbidden) => drop(forbidden.insert(known)),
            Err(error) => observed.unreadable.insert(known, error),
        }
    }
    let is_unread = |key: &ObjectKey, known: &Arc<ApiResource>| {
        !observed.live.contains_key(key)
            && !observed.unreadable.contains(key)
            && (forbidden.contains(known) || inventory.get(key).is_some())
    };
    let unread: Vec<(&ObjectKey, &Arc<ApiResource>)> =
        needed.iter().map(|(key, known)| (*key, *known)).filter(|(key, known)| is_unread(key, known)).collect();
    let read = async |(key, known)| {
        let known: &Arc<ApiResource> = known;
        (known, cluster.get_metadata(known, key).await)
    };
    for (known, read) in run_concurrently(unread, read).await {
        match read {
            Ok(object) => observed.live.extend(object.map(|object| (object.key.clone(), object))),
            Err(error) => observed.unreadable.insert(known, error),
        }
    }
    observed
}

/// Returns the labelled objects of a type that match, in a version that is served now.
async fn list_labelled(
    cluster: &Cluster,
    reflector: &Reflector,
    known: &Arc<ApiResource>,
    matches: impl Fn(&LiveObject) -> bool,
) -> Result<Labelled, ClusterError> {
    // A type that no version serves any more has no objects.
    let Some(resource) = cluster.find_resource_in_any_version(known).await? else {
        return Ok(Labelled::Objects(Vec::new()));
    };
    if let Some(objects) = reflector.select(&resource, &matches) {
        return Ok(Labelled::Objects(objects));
    }
    let mut listed = cluster.list_labelled(&resource).await;
    if let Err(error) = &listed
        && error.is_not_found()
    {
        listed = match cluster.find_resource_again(known).await? {
            None => return Ok(Labelled::Objects(Vec::new())),
            Some(served) if served == resource => listed,
            Some(served) => cluster.list_labelled(&served).await,
        };
    }
    match listed {
        Ok((objects, _)) => Ok(Labelled::Objects(objects.into_iter().filter(matches).collect())),
        Err(error) if error.is_forbidden() => Ok(Labelled::Forbidden),
        Err(error) => Err(error),
    }
}

/// Searches the whole cluster for objects that prove to belong to a stack. Used when its inventory was lost.
pub async fn find_stack_objects(cluster: &Cluster, stack: StackId) -> Result<Vec<Entry>, ClusterError> {
    let list = async |resource: Arc<ApiResource>| cluster.list_stack_objects(&resource, stack).await;
    let mut entries = Vec::new();
    for objects in run_concurrently(cluster.list_resources().await?, list).await {
        let owned = objects?.into_iter().filter(|object| object.ownership.proves_owner(stack, &object.key));
        entries.extend(owned.map(|LiveObject { key, resource, uid, .. }| Entry {
            key,
            resource,
            uid: Some(uid),
            once: None,
        }));
    }
    Ok(entries)
}
