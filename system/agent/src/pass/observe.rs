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
use crate::cluster::{ApiResource, Cluster, ClusterError, ListedTypes, LiveObject};

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

impl Observation {
    fn insert_all(&mut self, objects: impl IntoIterator<Item = LiveObject>) {
        self.live.extend(objects.into_iter().map(|object| (object.key.clone(), object)));
    }
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

    /// Returns true if a kind is not served, and nothing proves that its objects are gone.
    pub fn has_not_served(&self) -> bool {
        self.0.values().any(ClusterError::is_not_served)
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
    /// Objects, and the type in a version that is served, if there is one.
    Objects(Vec<LiveObject>, Option<Arc<ApiResource>>),
    /// Listing is not permitted. Reading single objects may be.
    Forbidden,
}

/// Objects that are needed, by key, with their resource types as they are known.
type Needed<'a> = BTreeMap<&'a ObjectKey, &'a Arc<ApiResource>>;

/// Reads the live objects of a stack: those that carry the ownership label, those that only the inventory knows, and those
/// that exist although they are new to the stack. Objects of the same types that prove to belong to the stack are among them,
/// although they are neither declared nor in the inventory.
pub async fn read_live_objects(
    cluster: &Cluster,
    reflector: &Reflector,
    desired: &DesiredStack,
    inventory: &Inventory,
) -> Observation {
    let cluster = &cluster.with_deadline(Instant::now() + READ_MAX);
    let mut needed = Needed::new();
    needed.extend(inventory.entries().map(|entry| (&*entry.key, &entry.resource)));
    needed.extend(desired.goal.objects().iter().map(|object| (&*object.key, &object.resource)));
    let mut resources: BTreeSet<&Arc<ApiResource>> = BTreeSet::new();
    // Inserted one by one: collecting would first sort thousands of equal values.
    resources.extend(needed.values());
    let stack = desired.stack.to_string();
    let is_own = |object: &LiveObject| {
        object.ownership.stack.as_deref() == Some(&*stack) && is_provably_of(desired.stack, object)
    };
    let is_needed = |object: &LiveObject| needed.contains_key(&*object.key) || is_own(object);
    let list = async |known| (known, list_labelled(cluster, reflector, known, is_needed).await);
    let mut observed = Observation::default();
    let mut served: BTreeMap<&Arc<ApiResource>, Arc<ApiResource>> = BTreeMap::new();
    let mut forbidden: BTreeSet<&Arc<ApiResource>> = BTreeSet::new();
    for (known, listed) in run_concurrently(resources.into_iter().collect(), list).await {
        match listed {
            Ok(Labelled::Objects(objects, resource)) => {
                observed.insert_all(objects);
                served.extend(resource.map(|resource| (known, resource)));
            }
            Ok(Labelled::Forbidden) => drop(forbidden.insert(known)),
            Err(error) => observed.unreadable.insert(known, error),
        }
    }
    needed.retain(|key, _| !observed.live.contains_key(*key) && !observed.unreadable.contains(key));
    let is_read_alone = |key: &ObjectKey, known| forbidden.contains(known) || inventory.get(key).is_some();
    let (mut alone, new): (Needed<'_>, Needed<'_>) =
        needed.into_iter().partition(|(key, known)| is_read_alone(key, *known));
    alone.extend(list_new(cluster, new, &served, &mut observed).await);
    let read = async |(key, known)| {
        let known: &Arc<ApiResource> = known;
        (known, cluster.get_metadata(known, key).await)
    };
    for (known, read) in run_concurrently(alone.into_iter().collect(), read).await {
        match read {
            Ok(object) => observed.insert_all(object),
            Err(error) => observed.unreadable.insert(known, error),
        }
    }
    observed
}

/// Returns true if an object proves to belong to a stack. One with an owner reference is left to the garbage collector.
pub fn is_provably_of(stack: StackId, object: &LiveObject) -> bool {
    object.owners.is_empty() && object.ownership.proves_owner(stack, &object.key)
}

/// Lists the objects that are new to a stack, by type and namespace: one that exists without the ownership label belongs to
/// no stack, or to another implementation of the annotations. Returns those that are better read alone.
async fn list_new<'a>(
    cluster: &Cluster,
    new: Needed<'a>,
    served: &BTreeMap<&Arc<ApiResource>, Arc<ApiResource>>,
    observed: &mut Observation,
) -> Needed<'a> {
    let mut groups: BTreeMap<(&Arc<ApiResource>, Option<&str>), Needed<'_>> = BTreeMap::new();
    for (key, known) in new {
        // An object of a type that is not served does not exist.
        if served.contains_key(known) {
            groups.entry((known, key.namespace.as_deref())).or_default().insert(key, known);
        }
    }
    let list = async |((known, namespace), keys): ((&'a Arc<ApiResource>, Option<&'a str>), Needed<'a>)| {
        let listed = match (keys.len(), served.get(known)) {
            (2.., Some(resource)) => cluster.list_single_page(resource, namespace).await,
            _ => Ok(None),
        };
        (known, keys, listed)
    };
    let mut alone = Needed::new();
    for (known, keys, listed) in run_concurrently(groups.into_iter().collect(), list).await {
        match listed {
            Ok(Some(objects)) => {
                observed.insert_all(objects.into_iter().filter(|object| keys.contains_key(&*object.key)));
            }
            // A namespace with many objects, an agent of one namespace, or a type that was removed.
            Ok(None) => alone.extend(keys),
            Err(error) if error.is_forbidden() || error.is_not_found() => alone.extend(keys),
            Err(error) => observed.unreadable.insert(known, error),
        }
    }
    alone
}

/// Returns the labelled objects of a type that match, in a version that is served now.
async fn list_labelled(
    cluster: &Cluster,
    reflector: &Reflector,
    known: &Arc<ApiResource>,
    matches: impl Fn(&LiveObject) -> bool,
) -> Result<Labelled, ClusterError> {
    // A type that no version serves any more has no objects.
    let Some(mut resource) = cluster.find_resource_in_any_version(known).await? else {
        return Ok(Labelled::Objects(Vec::new(), None));
    };
    if let Some(objects) = reflector.select(&resource, &matches) {
        return Ok(Labelled::Objects(objects, Some(resource)));
    }
    let mut listed = cluster.list_labelled(&resource).await;
    if let Err(error) = &listed
        && error.is_not_found()
    {
        match cluster.find_resource_again(known).await? {
            None => return Ok(Labelled::Objects(Vec::new(), None)),
            Some(served) if served == resource => {}
            Some(served) => {
                listed = cluster.list_labelled(&served).await;
                resource = served;
            }
        }
    }
    match listed {
        Ok((objects, _)) => Ok(Labelled::Objects(objects.into_iter().filter(matches).collect(), Some(resource))),
        Err(error) if error.is_forbidden() => Ok(Labelled::Forbidden),
        Err(error) => Err(error),
    }
}

/// Objects that prove to belong to a stack, as far as they could be searched for.
pub struct FoundObjects {
    /// Their entries.
    pub entries: Vec<Entry>,
    /// Errors of the kinds, or versions of API groups, that could not be searched.
    pub errors: Vec<ClusterError>,
}

/// Searches the whole cluster for objects that prove to belong to a stack. Used when its inventory was lost, and before a
/// removal is confirmed. With a time limit for each of its two steps, to find the kinds and to list their objects, so that an
/// API group that does not respond takes no time from the others. Fails if no kind could be searched.
pub async fn find_stack_objects(
    cluster: &Cluster,
    stack: StackId,
    limit: Option<Duration>,
) -> Result<FoundObjects, ClusterError> {
    let limited = || limit.map_or_else(|| cluster.clone(), |limit| cluster.with_deadline(Instant::now() + limit));
    let ListedTypes { resources, mut errors } = limited().list_resources().await?;
    let cluster = &limited();
    let list = async |resource: Arc<ApiResource>| cluster.list_stack_objects(&resource, stack).await;
    let mut entries = Vec::new();
    let mut is_any_searched = false;
    for objects in run_concurrently(resources, list).await {
        let objects = match objects {
            Ok(objects) => objects,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        is_any_searched = true;
        let owned = objects.into_iter().filter(|object| object.ownership.proves_owner(stack, &object.key));
        entries.extend(owned.map(|object| Entry::from_live(&object)));
    }
    match errors.pop() {
        Some(error) if !is_any_searched => Err(error),
        last => {
            errors.extend(last);
            Ok(FoundObjects { entries, errors })
        }
    }
}
