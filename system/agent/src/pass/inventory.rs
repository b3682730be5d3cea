//! Inventory of a stack: the objects that the agent created for it, stored in the cluster in chunks.
//!
//! The key of an object is stored before the object is first written, its UID after. An entry is removed only when the
//! object was seen gone or owned by another. An entry never moves between chunks, so that no order of partial writes loses
//! one. The first chunk has the number of chunks, and each the checksum of its entries, so that a loss is noticed. Objects that are in no inventory are
//! found by `observe::find_stack_objects`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sindri_model::{Checksum, Epoch, ObjectKey, RevisionId, Sequence, StackId};
use thiserror::Error;

use super::creation::{Creation, CreationResult, SeenResult};
use crate::cluster::{ApiResource, ApplyMode, ApplyPatch, Cluster, ClusterError, Limits, LiveObject};

/// Label of an inventory: id of its stack.
pub const INVENTORY_LABEL: &str = "sindri.dev/inventory";
/// Name of the ConfigMap with the stacks that had objects before the first inventory.
pub const FORMER_STACKS_NAME: &str = "inventory-former-stacks";
/// Format of the header: `applied` is cleared when another revision begins.
const FORMAT: &str = "2";
/// Chunks of one inventory: more objects than a stack can have.
const CHUNKS_MAX: usize = 1_000;

/// Object that the agent created, or is about to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key of the object.
    pub key: Arc<ObjectKey>,
    /// Resource type of the object.
    pub resource: Arc<ApiResource>,
    /// UID of the object, once it is known.
    pub uid: Option<String>,
    /// Creation of an object that is applied once; `None` for other objects.
    pub once: Option<Creation>,
    /// True if its deletion is part of the approval of [`Inventory::approved`].
    pub is_delete_approved: bool,
}

impl Entry {
    /// Creates the entry of an object that was not written yet.
    pub fn new(key: Arc<ObjectKey>, resource: Arc<ApiResource>) -> Self {
        Self { key, resource, uid: None, once: None, is_delete_approved: false }
    }

    /// Creates the entry of an object that exists.
    pub fn from_live(object: &LiveObject) -> Self {
        Self { uid: Some(object.uid.clone()), ..Self::new(object.key.clone(), object.resource.clone()) }
    }
}

/// Serialized entries. There are thousands of few resource types, so the type is stored once for all of its objects.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredEntries {
    /// Objects of one type; group and kind of their keys are those of the resource.
    Grouped { resource: ApiResource, objects: Vec<StoredObject> },
    /// A single object, with everything that is known of it.
    Single {
        key: ObjectKey,
        resource: ApiResource,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        once: Option<Checksum>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// Left out by earlier versions, which did not distinguish an unknown result from success.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_result_unseen: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_delete_approved: bool,
    },
}

/// Namespace, name and UID.
type StoredObject = (Option<String>, String, Option<String>);

impl StoredEntries {
    fn from_entries<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Self> {
        let mut grouped: BTreeMap<&ApiResource, Vec<StoredObject>> = BTreeMap::new();
        let mut stored = Vec::new();
        for Entry { key, resource, uid, once, is_delete_approved } in entries {
            let is_plain = once.is_none() && !is_delete_approved;
            if is_plain && (&key.group, &key.kind) == (&resource.group, &resource.kind) {
                let object = (key.namespace.clone(), key.name.clone(), uid.clone());
                grouped.entry(resource).or_default().push(object);
            } else {
                let (key, resource) = (ObjectKey::clone(key), ApiResource::clone(resource));
                let result = once.as_ref().map(|once| once.result.clone());
                let is_result_unseen = result == Some(CreationResult::Unseen);
                let failure = if let Some(CreationResult::Failed(reason)) = result { Some(reason) } else { None };
                let once = once.as_ref().map(|once| once.manifest.clone());
                let (uid, is_delete_approved) = (uid.clone(), *is_delete_approved);
                stored.push(Self::Single { key, resource, uid, once, failure, is_result_unseen, is_delete_approved });
            }
        }
        let grouped = grouped.into_iter();
        stored.extend(grouped.map(|(resource, objects)| Self::Grouped { resource: resource.clone(), objects }));
        stored
    }

    fn into_entries(self) -> Vec<Entry> {
        let (resource, objects) = match self {
            Self::Grouped { resource, objects } => (Arc::new(resource), objects),
            Self::Single { key, resource, uid, once, failure, is_result_unseen, is_delete_approved } => {
                let result = match failure {
                    Some(reason) => CreationResult::Failed(reason),
                    None if is_result_unseen => CreationResult::Unseen,
                    None => CreationResult::Completed,
                };
                let once = once.map(|manifest| Creation { manifest, result });
                let entry = Entry::new(Arc::new(key), Arc::new(resource));
                return vec![Entry { uid, once, is_delete_approved, ..entry }];
            }
        };
        let entry = |(namespace, name, uid): StoredObject| {
            let key = Arc::new(resource.object_key(namespace.as_deref(), &name));
            Entry { uid, ..Entry::new(key, resource.clone()) }
        };
        objects.into_iter().map(entry).collect()
    }
}

/// Position of a revision in the order of all revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RevisionPosition {
    /// Epoch of the broker's database in which the revision was submitted.
    pub epoch: Epoch,
    /// Sequence within the epoch.
    pub sequence: Sequence,
}

impl RevisionPosition {
    /// Returns the position of a sequence. The epoch is the one in which the revision was submitted, so that a revision that
    /// a restored database still has is not newer because of the restore.
    pub fn from_sequence(sequence: Sequence) -> Self {
        Self { epoch: sequence.epoch(), sequence }
    }
}

impl fmt::Display for RevisionPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of epoch {}", self.sequence, self.epoch)
    }
}

/// ConfigMaps of an inventory, by the index of their chunk. A write of a chunk that exists names its version, and any other one
/// only creates, so that a write that arrives late, for example one of a former leader, changes nothing.
pub type ChunkVersions = BTreeMap<usize, ChunkVersion>;

/// Version of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkVersion {
    uid: String,
    resource_version: String,
}

impl ChunkVersion {
    fn from_metadata(metadata: &ObjectMeta) -> Option<Self> {
        Some(Self { uid: metadata.uid.clone()?, resource_version: metadata.resource_version.clone()? })
    }
}

/// Inventory of one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    chunks: Vec<BTreeMap<Arc<ObjectKey>, Entry>>,
    /// Most entries of a chunk.
    chunk_entries_max: usize,
    /// ConfigMaps that exist.
    pub versions: ChunkVersions,
    /// Newest revision whose writes began.
    pub begun: Option<RevisionPosition>,
    /// Last revision of which every write succeeded.
    pub applied: Option<RevisionPosition>,
    /// Revision whose deletion of much of the stack was approved. After an interruption the rest of the approved objects needs no
    /// new approval; others do.
    approved: Option<RevisionId>,
}

/// Completeness of an inventory as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Every chunk was read.
    Complete,
    /// There is no chunk: the stack is new, or another client deleted its inventory.
    Missing,
    /// Some chunks are missing or have invalid content.
    Partial,
}

/// Failure to read or write an inventory.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InventoryError {
    /// The request failed.
    #[error("the inventory of the stack: {0}")]
    Cluster(#[from] ClusterError),
    /// Another client changed a ConfigMap of the inventory; holds its name.
    #[error("the inventory of the stack: another client changed ConfigMap {0}, which is read again")]
    Changed(String),
}

impl Default for Inventory {
    fn default() -> Self {
        Self::new(Limits::default().inventory_chunk_entries)
    }
}

impl Inventory {
    /// Creates an empty inventory with chunks of at most this number of entries.
    pub fn new(chunk_entries_max: usize) -> Self {
        let (chunks, versions) = (Vec::new(), BTreeMap::new());
        Self { chunks, chunk_entries_max, versions, begun: None, applied: None, approved: None }
    }

    /// Returns the entry of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.chunks.iter().find_map(|chunk| chunk.get(key))
    }

    /// Returns every entry, ordered within its chunk.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flat_map(BTreeMap::values)
    }

    /// Returns the number of ConfigMaps, at least one.
    fn chunk_count(&self) -> usize {
        self.chunks.len().max(1)
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Adds an entry, or replaces the one of the same key in its chunk.
    pub fn insert(&mut self, entry: Entry) {
        let existing = self.chunks.iter().position(|chunk| chunk.contains_key(&entry.key));
        let with_room = self.chunks.iter().position(|chunk| chunk.len() < self.chunk_entries_max);
        let index = existing.or(with_room).unwrap_or_else(|| {
            self.chunks.push(BTreeMap::new());
            self.chunks.len() - 1
        });
        self.chunks[index].insert(entry.key.clone(), entry);
    }

    /// Sets the UID of an object.
    pub fn set_uid(&mut self, key: &ObjectKey, uid: &str) {
        let entry = self.chunks.iter_mut().find_map(|chunk| chunk.get_mut(key));
        entry.expect("an object is in the inventory before it is written").uid = Some(uid.to_owned());
    }

    /// Records that an object that is applied once was created with this manifest, and its result.
    pub fn set_once(&mut self, key: &ObjectKey, manifest: &Checksum, result: CreationResult) {
        let entry = self.chunks.iter_mut().find_map(|chunk| chunk.get_mut(key));
        let creation = Creation { manifest: manifest.clone(), result };
        entry.expect("an object is in the inventory before it is written").once = Some(creation);
    }

    /// Returns true if an object is applied once.
    pub fn has_once(&self) -> bool {
        self.entries().any(|entry| entry.once.is_some())
    }

    /// Records the results of objects that are applied once; `find` returns `None` for objects without one, or that are gone.
    pub fn set_results(&mut self, find: impl Fn(&ObjectKey) -> Option<SeenResult>) {
        for entry in self.chunks.iter_mut().flat_map(BTreeMap::values_mut) {
            if let Some(creation) = &mut entry.once
                && let Some(SeenResult { result, is_terminating }) = find(&entry.key)
                // A controller may clean up the status of an object that is being deleted.
                && (!is_terminating || creation.result == CreationResult::Unseen)
            {
                creation.result = result;
            }
        }
    }

    /// Records that the deletion of these objects, which a revision drops, was approved.
    pub fn approve_deletes(&mut self, revision: RevisionId, objects: &[Arc<ObjectKey>]) {
        self.approved = Some(revision);
        let objects: BTreeSet<&ObjectKey> = objects.iter().map(|key| &**key).collect();
        for entry in self.chunks.iter_mut().flat_map(BTreeMap::values_mut) {
            entry.is_delete_approved = objects.contains(&*entry.key);
        }
    }

    /// Returns true if the deletion of an object, which a revision drops, was approved.
    pub fn is_delete_approved(&self, revision: RevisionId, key: &ObjectKey) -> bool {
        self.approved == Some(revision) && self.get(key).is_some_and(|entry| entry.is_delete_approved)
    }

    /// Removes the entry of an object that is gone or owned by another.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.chunks.iter_mut().for_each(|chunk| {
            chunk.remove(key);
        });
    }
}

/// Returns the resource type of inventories.
pub fn config_maps() -> Arc<ApiResource> {
    Arc::new(ApiResource::from_namespaced_type::<ConfigMap>())
}

fn chunk_name(stack: StackId, index: usize) -> String {
    format!("inventory-{stack}-{index}")
}

/// Returns the index of the chunk in a ConfigMap of this name.
fn chunk_index(stack: StackId, name: &str) -> Option<usize> {
    let index = name.strip_prefix(&format!("inventory-{stack}-"))?.parse().ok()?;
    (index < CHUNKS_MAX && chunk_name(stack, index) == name).then_some(index)
}

/// Returns true for names of ConfigMaps that hold inventories.
pub fn is_inventory_name(name: &str) -> bool {
    name.starts_with("inventory-")
}

fn build_chunk(namespace: &str, stack: StackId, index: usize, inventory: &Inventory) -> ConfigMap {
    let entries = StoredEntries::from_entries(inventory.chunks.get(index).into_iter().flat_map(BTreeMap::values));
    let entries = serde_json::to_string(&entries).expect("entries have string keys only");
    let checksum = Checksum::compute(&entries).to_string();
    let mut data = BTreeMap::from([("index", index.to_string()), ("entries", entries), ("checksum", checksum)])
        .into_iter()
        .map(|(field, value)| (field.to_owned(), value))
        .collect::<BTreeMap<_, _>>();
    if index == 0 {
        data.insert("chunks".to_owned(), inventory.chunk_count().to_string());
        data.insert("begun".to_owned(), json!(inventory.begun).to_string());
        data.insert("applied".to_owned(), json!(inventory.applied).to_string());
        data.insert("approved".to_owned(), json!(inventory.approved).to_string());
        data.insert("format".to_owned(), FORMAT.to_owned());
    }
    let version = inventory.versions.get(&index);
    let metadata = ObjectMeta {
        name: Some(chunk_name(stack, index)),
        namespace: Some(namespace.to_owned()),
        labels: Some(BTreeMap::from([(INVENTORY_LABEL.to_owned(), stack.to_string())])),
        uid: version.map(|version| version.uid.clone()),
        resource_version: version.map(|version| version.resource_version.clone()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

/// Reads the inventory of a stack. A failed read is an error, never an empty inventory.
pub async fn load_inventory(cluster: &Cluster, stack: StackId) -> Result<(Inventory, Completeness), InventoryError> {
    let (namespace, label) = (cluster.agent_namespace(), stack.to_string());
    let chunks: Vec<ConfigMap> = cluster.list_full(&config_maps(), namespace, INVENTORY_LABEL, &label).await?;
    Ok(read_chunks(stack, chunks, cluster.limits().inventory_chunk_entries))
}

fn read_chunks(stack: StackId, chunks: Vec<ConfigMap>, entries_max: usize) -> (Inventory, Completeness) {
    // A backup tool may have copied one under another name, with its label.
    let index = |config_map: &ConfigMap| chunk_index(stack, config_map.metadata.name.as_deref()?);
    let chunks: BTreeMap<usize, ConfigMap> =
        chunks.into_iter().filter_map(|config_map| Some((index(&config_map)?, config_map))).collect();
    let mut inventory = Inventory::new(entries_max);
    let mut read: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    let mut is_malformed = false;
    for (index, config_map) in &chunks {
        // Also if its content cannot be read: then it is replaced, and deleted with the stack.
        inventory.versions.extend(ChunkVersion::from_metadata(&config_map.metadata).map(|version| (*index, version)));
        inventory.chunks.resize(*index + 1, BTreeMap::new());
        match read_chunk(*index, config_map, &mut inventory) {
            Ok(count) => drop(read.insert(*index, count)),
            Err(cause) => {
                let name = chunk_name(stack, *index);
                tracing::warn!("the inventory in ConfigMap {name} cannot be read: {cause}");
                is_malformed = true;
            }
        }
    }
    // Earlier versions of the agent did not store the number of chunks.
    let count = read.get(&0).copied().flatten().unwrap_or_default().max(inventory.chunks.len());
    let completeness = match chunks.is_empty() {
        true => Completeness::Missing,
        false if is_malformed || read.len() < count => Completeness::Partial,
        false => Completeness::Complete,
    };
    (inventory, completeness)
}

/// Adds the entries of a chunk to the inventory, which has room for them. Returns the number of chunks, which the first one has.
fn read_chunk(index: usize, config_map: &ConfigMap, inventory: &mut Inventory) -> Result<Option<usize>, String> {
    let get = |field: &str| config_map.data.as_ref().and_then(|data| data.get(field)).map(String::as_str);
    let require = |field: &str| get(field).ok_or(format!("data.{field} is missing"));
    if require("index")? != index.to_string() {
        return Err("data.index: it is that of another chunk".to_owned());
    }
    let text = require("entries")?;
    let entries: Vec<StoredEntries> = serde_json::from_str(text).map_err(|error| format!("data.entries: {error}"))?;
    if index == 0 {
        inventory.begun = serde_json::from_str(require("begun")?).map_err(|error| format!("data.begun: {error}"))?;
        // Inventories of earlier versions of the agent do not have it.
        let applied = get("applied").unwrap_or("null");
        inventory.applied = serde_json::from_str(applied).map_err(|error| format!("data.applied: {error}"))?;
        // Earlier versions of the agent kept it when another revision began.
        if get("format") != Some(FORMAT) && inventory.begun > inventory.applied {
            inventory.applied = None;
        }
        let approved = get("approved").unwrap_or("null");
        inventory.approved = serde_json::from_str(approved).map_err(|error| format!("data.approved: {error}"))?;
    }
    // Inventories of earlier versions of the agent have no checksum.
    if get("checksum").is_some_and(|checksum| checksum != Checksum::compute(text).to_string()) {
        return Err("data.entries: it was changed, and does not match data.checksum".to_owned());
    }
    let entries = entries.into_iter().flat_map(StoredEntries::into_entries);
    inventory.chunks[index] = entries.map(|entry| (entry.key.clone(), entry)).collect();
    Ok(get("chunks").and_then(|count| count.parse().ok()))
}

/// Writes the chunks of `after` that differ from `before`, if any. Returns the versions of all chunks.
pub async fn save_inventory(
    cluster: &Cluster,
    stack: StackId,
    before: &Inventory,
    after: &Inventory,
) -> Result<ChunkVersions, InventoryError> {
    save_inventory_with(cluster, stack, before, after, &[]).await
}

/// The same, and writes the chunks of these objects also if they have not changed: a success proves that they can be written.
pub async fn save_inventory_with(
    cluster: &Cluster,
    stack: StackId,
    before: &Inventory,
    after: &Inventory,
    proven: &[&ObjectKey],
) -> Result<ChunkVersions, InventoryError> {
    let is_proven = |index: &usize| {
        let chunk = after.chunks.get(*index);
        chunk.is_some_and(|chunk| proven.iter().any(|key| chunk.contains_key(*key)))
    };
    let positions = |inventory: &Inventory| (inventory.begun, inventory.applied, inventory.approved);
    let header = |inventory: &Inventory| (positions(inventory), inventory.chunk_count());
    let has_changed = |index: &usize| {
        let is_header_changed = *index == 0 && header(before) != header(after);
        is_header_changed || before.chunks.get(*index) != after.chunks.get(*index) || is_proven(index)
    };
    let changed: Vec<usize> = (0..after.chunk_count()).filter(has_changed).collect();
    if !changed.is_empty() && *before == Inventory::new(before.chunk_entries_max) {
        cluster.ensure_agent_namespace().await?;
    }
    write_chunks(cluster, stack, before, after, changed).await
}

/// Writes every chunk, because some of those in the cluster were lost. Returns their versions.
pub async fn rewrite_inventory(
    cluster: &Cluster,
    stack: StackId,
    inventory: &Inventory,
) -> Result<ChunkVersions, InventoryError> {
    cluster.ensure_agent_namespace().await?;
    write_chunks(cluster, stack, inventory, inventory, (0..inventory.chunk_count()).collect()).await
}

async fn write_chunks(
    cluster: &Cluster,
    stack: StackId,
    before: &Inventory,
    after: &Inventory,
    indexes: Vec<usize>,
) -> Result<ChunkVersions, InventoryError> {
    let mut versions = after.versions.clone();
    for index in in_order_of_writes(indexes) {
        let data_before = build_chunk(cluster.agent_namespace(), stack, index, before).data;
        let chunk = build_chunk(cluster.agent_namespace(), stack, index, after);
        versions.insert(index, write_chunk(cluster, stack, data_before.as_ref(), chunk).await?);
    }
    Ok(versions)
}

/// Returns the order in which chunks are written: the first one last, because it has the number of all. If a later one cannot be
/// created, for example because of a quota, the inventory in the cluster is complete as it is.
fn in_order_of_writes(indexes: Vec<usize>) -> impl Iterator<Item = usize> {
    let first = indexes.first().copied().filter(|index| *index == 0);
    indexes.into_iter().filter(|index| *index != 0).chain(first)
}

/// Writes one chunk if it has the expected version. After a conflict it was written if it has the new data (the response to an
/// earlier attempt was lost), and is written once more if it still has the data before (another client changed only its
/// metadata).
async fn write_chunk(
    cluster: &Cluster,
    stack: StackId,
    data_before: Option<&BTreeMap<String, String>>,
    mut chunk: ConfigMap,
) -> Result<ChunkVersion, InventoryError> {
    let resource = config_maps();
    let name = chunk.metadata.name.clone().unwrap_or_default();
    let key = resource.object_key(Some(cluster.agent_namespace()), &name);
    let mut is_first = true;
    loop {
        let written = match chunk.metadata.uid {
            // Another process may have written it since it was not found, and an apply would replace its entries.
            None => cluster.create(&resource, &key, &chunk).await,
            Some(_) => cluster.apply_metadata(&ApplyPatch::new(&resource, &key, &chunk), ApplyMode::Persist).await,
        };
        let conflict = match written {
            Ok(written) => {
                return Ok(ChunkVersion { uid: written.uid, resource_version: written.resource_version });
            }
            Err(error) if error.is_conflict() => error,
            Err(error) => return Err(error.into()),
        };
        let live: ConfigMap = cluster.get(&resource, &key).await?.ok_or(conflict)?;
        if live.metadata.labels.as_ref().and_then(|labels| labels.get(INVENTORY_LABEL)) != Some(&stack.to_string()) {
            restore_label(cluster, stack, &key, live).await?;
            return Err(InventoryError::Changed(name));
        }
        let version =
            ChunkVersion::from_metadata(&live.metadata).ok_or_else(|| InventoryError::Changed(name.clone()))?;
        if has_fields(&live, chunk.data.as_ref()) {
            return Ok(version);
        }
        if !is_first || !has_fields(&live, data_before) {
            return Err(InventoryError::Changed(name));
        }
        is_first = false;
        (chunk.metadata.uid, chunk.metadata.resource_version) = (Some(version.uid), Some(version.resource_version));
    }
}

/// Gives a ConfigMap of an inventory its label again, which another client has removed: without it the chunk is not found.
async fn restore_label(
    cluster: &Cluster,
    stack: StackId,
    key: &ObjectKey,
    live: ConfigMap,
) -> Result<(), ClusterError> {
    let metadata = ObjectMeta {
        name: live.metadata.name,
        namespace: live.metadata.namespace,
        labels: Some(BTreeMap::from([(INVENTORY_LABEL.to_owned(), stack.to_string())])),
        uid: live.metadata.uid,
        resource_version: live.metadata.resource_version,
        ..ObjectMeta::default()
    };
    let config_map = ConfigMap { metadata, data: live.data, ..ConfigMap::default() };
    let resource = config_maps();
    cluster.apply_only(&ApplyPatch::new(&resource, key, &config_map), ApplyMode::Persist).await
}

/// Returns true if a ConfigMap has these data. Other clients may have added more.
fn has_fields(config_map: &ConfigMap, data: Option<&BTreeMap<String, String>>) -> bool {
    let get = |field: &String| config_map.data.as_ref().and_then(|data| data.get(field));
    data.is_some_and(|data| data.iter().all(|(field, value)| get(field) == Some(value)))
}

/// Deletes the inventory of a stack that has no objects any more.
pub async fn delete_inventory(cluster: &Cluster, stack: StackId, inventory: &Inventory) -> Result<(), InventoryError> {
    assert!(inventory.is_empty(), "an inventory with entries is never deleted");
    let resource = config_maps();
    for index in (0..inventory.chunk_count()).rev() {
        let key = resource.object_key(Some(cluster.agent_namespace()), &chunk_name(stack, index));
        cluster.delete(&key, || cluster.get_metadata(&resource, &key)).await??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use proptest::prelude::*;

    use super::*;

    const NAMESPACE: &str = "sindri-system";
    const ENTRIES: usize = 1_000;

    fn entry(number: usize) -> Entry {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("shop".into()),
            name: format!("object-{number}"),
        };
        Entry::new(Arc::new(key), config_maps())
    }

    /// Serializes an inventory and reads it again.
    fn reread(stack: StackId, inventory: &Inventory) -> Inventory {
        let (again, completeness) = read_chunks(stack, chunks(stack, inventory), ENTRIES);
        assert_eq!(completeness, Completeness::Complete);
        again
    }

    fn chunks(stack: StackId, inventory: &Inventory) -> Vec<ConfigMap> {
        (0..inventory.chunk_count()).map(|index| build_chunk(NAMESPACE, stack, index, inventory)).collect()
    }

    #[test]
    fn the_loss_of_any_chunk_or_entry_is_noticed() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let mut inventory = Inventory::default();
        (0..3 * inventory.chunk_entries_max).for_each(|number| inventory.insert(entry(number)));
        let all = chunks(stack, &inventory);
        for lost in 0..all.len() {
            let mut rest = all.clone();
            rest.remove(lost);
            assert_eq!(read_chunks(stack, rest, ENTRIES).1, Completeness::Partial, "chunk {lost}");
            let mut malformed = all.clone();
            malformed[lost].data = None;
            assert_eq!(read_chunks(stack, malformed, ENTRIES).1, Completeness::Partial, "chunk {lost}");
            let mut edited = all.clone();
            let data = edited[lost].data.as_mut().unwrap();
            data.insert("entries".to_owned(), "[]".to_owned());
            assert_eq!(read_chunks(stack, edited, ENTRIES).1, Completeness::Partial, "chunk {lost}");
        }
        assert_eq!(read_chunks(stack, vec![], ENTRIES).1, Completeness::Missing);
        assert_eq!(read_chunks(stack, chunks(stack, &Inventory::default()), ENTRIES).1, Completeness::Complete);
        let mut copied = all.clone();
        copied.push(ConfigMap { data: all[0].data.clone(), ..ConfigMap::default() });
        copied[3].metadata.name = Some(format!("{}-backup", chunk_name(stack, 0)));
        assert_eq!(read_chunks(stack, copied, ENTRIES), (inventory, Completeness::Complete), "a copy is ignored");
    }

    #[test]
    fn a_chunk_that_cannot_be_read_is_replaced_and_no_other_one_is() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let mut inventory = Inventory::default();
        (0..2 * inventory.chunk_entries_max).for_each(|number| inventory.insert(entry(number)));
        let mut all = chunks(stack, &inventory);
        for (index, chunk) in all.iter_mut().enumerate() {
            (chunk.metadata.uid, chunk.metadata.resource_version) = (Some(index.to_string()), Some("7".to_owned()));
        }
        all[1].data = None;
        let (read, completeness) = read_chunks(stack, all, ENTRIES);
        assert_eq!((completeness, read.chunk_count()), (Completeness::Partial, 2));
        let uid = |inventory: &Inventory, index| build_chunk(NAMESPACE, stack, index, inventory).metadata.uid;
        assert_eq!((uid(&read, 0), uid(&read, 1)), (Some("0".to_owned()), Some("1".to_owned())));
        assert_eq!(uid(&read, 2), None, "a new chunk is created");
    }

    #[test]
    fn ten_thousand_objects_fit_in_chunks_far_below_a_mebibyte() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let mut inventory = Inventory::default();
        (0..10_000).for_each(|number| inventory.insert(entry(number)));
        assert_eq!(inventory.chunks.len(), 10);
        for index in 0..10 {
            let chunk = serde_json::to_string(&build_chunk(NAMESPACE, stack, index, &inventory)).unwrap();
            assert!(chunk.len() < 256 * 1024);
        }
        assert_eq!(reread(stack, &inventory), inventory);
    }

    #[test]
    fn entries_of_every_form_are_read_as_they_were_written() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let with_uid = Entry { uid: Some("7".into()), ..entry(1) };
        let namespaces = Arc::new(ApiResource::from_cluster_type::<Namespace>());
        let cluster_scoped = Entry::new(Arc::new(namespaces.object_key(None, "shop")), namespaces);
        let mut renamed = entry(2);
        Arc::make_mut(&mut renamed.key).kind = "Renamed".into();
        let creation = Creation {
            manifest: Checksum::compute("a"),
            result: CreationResult::Failed("BackoffLimitExceeded".to_owned()),
        };
        let once = Entry { once: Some(creation), ..entry(3) };
        let creation = Creation { manifest: Checksum::compute("a"), result: CreationResult::Unseen };
        let unseen = Entry { once: Some(creation), ..entry(4) };
        let mut inventory = Inventory::default();
        [entry(0), with_uid, cluster_scoped, renamed, once, unseen]
            .into_iter()
            .for_each(|entry| inventory.insert(entry));
        inventory.approve_deletes("20000000-0000-4000-8000-000000000000".parse().unwrap(), &[entry(0).key]);
        assert_eq!(reread(stack, &inventory), inventory);
    }

    #[test]
    fn the_result_of_an_object_that_is_being_deleted_replaces_only_an_unknown_one() {
        let failed = || CreationResult::Failed("Failed: deadline".to_owned());
        for (before, seen, is_terminating, after) in [
            (CreationResult::Unseen, failed(), true, failed()),
            (failed(), CreationResult::Completed, true, failed()),
            (failed(), CreationResult::Completed, false, CreationResult::Completed),
        ] {
            let creation = Creation { manifest: Checksum::compute("a"), result: before };
            let mut inventory = Inventory::default();
            inventory.insert(Entry { once: Some(creation), ..entry(1) });
            inventory.set_results(|_| Some(SeenResult { result: seen.clone(), is_terminating }));
            let result = inventory.entries().find_map(|entry| entry.once.clone()).map(|once| once.result);
            assert_eq!(result, Some(after));
            inventory.set_results(|_| None);
            assert!(inventory.has_once(), "an object that is gone keeps its result");
        }
    }

    #[test]
    fn inventories_of_earlier_versions_can_be_read() {
        let written = r#"[{"key":{"group":"","kind":"ConfigMap","namespace":"shop","name":"object-1"},
            "resource":{"group":"","version":"v1","kind":"ConfigMap","plural":"configmaps","namespaced":true},"uid":"7"}]"#;
        let data = [("index", "0"), ("entries", written), ("begun", "null")];
        let data = data.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let metadata = ObjectMeta { name: Some(chunk_name(stack, 0)), ..ObjectMeta::default() };
        let config_map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
        let (inventory, completeness) = read_chunks(stack, vec![config_map], ENTRIES);
        assert_eq!(completeness, Completeness::Complete);
        assert_eq!(inventory.entries().collect::<Vec<_>>(), [&Entry { uid: Some("7".into()), ..entry(1) }]);
    }

    #[test]
    fn a_revision_after_which_an_earlier_version_began_another_one_is_not_applied() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let position = |sequence| Some(RevisionPosition::from_sequence(Sequence(sequence)));
        for (begun, is_applied) in [(1, true), (2, false)] {
            let inventory = Inventory { begun: position(begun), applied: position(1), ..Inventory::default() };
            assert_eq!(reread(stack, &inventory).applied, position(1), "this version");
            let mut earlier = chunks(stack, &inventory);
            earlier[0].data.as_mut().unwrap().remove("format");
            assert_eq!(read_chunks(stack, earlier, ENTRIES).0.applied.is_some(), is_applied, "begun {begun}");
        }
    }

    proptest! {
        /// Entries stay in their chunks, so a partial write of chunks never loses an entry that both states have.
        #[test]
        fn no_order_of_partial_writes_loses_an_entry(
            first in prop::collection::vec(0usize..40, 0..40),
            removed in prop::collection::vec(0usize..40, 0..20),
            added in prop::collection::vec(0usize..80, 0..40),
            written in 0usize..4,
        ) {
            let mut before = Inventory::default();
            first.iter().for_each(|number| before.insert(entry(*number)));
            let mut after = before.clone();
            removed.iter().for_each(|number| after.remove(&entry(*number).key));
            added.iter().for_each(|number| after.insert(entry(*number)));
            let mut partial = before.clone();
            for index in in_order_of_writes((0..after.chunks.len()).collect()).take(written) {
                if partial.chunks.len() <= index { partial.chunks.resize(index + 1, BTreeMap::new()); }
                partial.chunks[index] = after.chunks[index].clone();
            }
            for kept in after.entries().filter(|entry| before.get(&entry.key).is_some()) {
                prop_assert!(partial.get(&kept.key).is_some());
            }
        }
    }
}
