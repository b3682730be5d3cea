//! What the agent knows to be its own in the cluster, per stack: written ahead, in chunks.
//!
//! The key of an object is here before the object is first written, its UID after. An entry goes only when
//! the object was seen gone or seen to be someone else's. An entry never moves between chunks, so that no
//! order of partial writes loses one. Left out: finding what no inventory knows (a sweep).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sindri_model::{Epoch, ObjectKey, Sequence, StackId};
use thiserror::Error;

use crate::cluster::{Cluster, ClusterError, Mode, Patch, Resource};

/// Where inventories are kept.
pub const INVENTORY_NAMESPACE: &str = "sindri-system";
/// Labels an inventory with its stack.
pub const INVENTORY_LABEL: &str = "sindri.dev/inventory";
/// An entry is at most a few hundred bytes, and an object of a cluster at most about a mebibyte.
const CHUNK_ENTRIES_MAX: usize = 1_000;

/// One object that is ours, or may become so at any moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which object.
    pub key: Arc<ObjectKey>,
    /// Where to find it.
    pub resource: Arc<Resource>,
    /// Its identity, once it is known.
    pub uid: Option<String>,
}

/// Entries as they are written. There are thousands of them, of few kinds: what they share is written once.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept<'a> {
    /// Objects of one kind. Group and kind of their keys are those of the resource.
    Together { resource: Cow<'a, Resource>, objects: Vec<KeptObject<'a>> },
    /// One by itself, as earlier agents wrote them all.
    Alone {
        key: Cow<'a, ObjectKey>,
        resource: Cow<'a, Resource>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<Cow<'a, str>>,
    },
}

/// A namespace, a name and an identity.
type KeptObject<'a> = (Option<Cow<'a, str>>, Cow<'a, str>, Option<Cow<'a, str>>);

impl<'a> Kept<'a> {
    fn all(entries: impl Iterator<Item = &'a Entry>) -> Vec<Self> {
        let mut together: BTreeMap<&Resource, Vec<KeptObject<'_>>> = BTreeMap::new();
        let mut kept = Vec::new();
        for Entry { key, resource, uid } in entries {
            let uid = uid.as_deref().map(Cow::Borrowed);
            if (&key.group, &key.kind) == (&resource.group, &resource.kind) {
                let namespace = key.namespace.as_deref().map(Cow::Borrowed);
                together.entry(resource).or_default().push((namespace, Cow::Borrowed(&key.name), uid));
            } else {
                kept.push(Self::Alone { key: Cow::Borrowed(key), resource: Cow::Borrowed(resource), uid });
            }
        }
        kept.extend(
            together
                .into_iter()
                .map(|(resource, objects)| Self::Together { resource: Cow::Borrowed(resource), objects }),
        );
        kept
    }

    fn into_entries(self) -> Vec<Entry> {
        let (resource, objects) = match self {
            Self::Together { resource, objects } => (Arc::new(resource.into_owned()), objects),
            Self::Alone { key, resource, uid } => {
                let (key, resource) = (Arc::new(key.into_owned()), Arc::new(resource.into_owned()));
                return vec![Entry { key, resource, uid: uid.map(Cow::into_owned) }];
            }
        };
        let entry = |(namespace, name, uid): KeptObject<'_>| {
            let (group, kind) = (resource.group.clone(), resource.kind.clone());
            let (namespace, name) = (namespace.map(Cow::into_owned), name.into_owned());
            let key = Arc::new(ObjectKey { group, kind, namespace, name });
            Entry { key, resource: resource.clone(), uid: uid.map(Cow::into_owned) }
        };
        objects.into_iter().map(entry).collect()
    }
}

/// The position of a revision in everything that was ever submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The life of the broker's database.
    pub epoch: Epoch,
    /// The sequence within it.
    pub sequence: Sequence,
}

/// The inventory of one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    chunks: Vec<BTreeMap<Arc<ObjectKey>, Entry>>,
    /// The highest revision that was ever begun here.
    pub begun: Option<Position>,
    /// The last revision of which every write succeeded.
    pub applied: Option<Position>,
}

/// The inventory cannot be read or written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InventoryError {
    /// The cluster did not do it.
    #[error("the inventory of the stack: {0}")]
    Cluster(#[from] ClusterError),
    /// It is there and makes no sense.
    #[error("the inventory of the stack: {name} cannot be read: {cause}")]
    Malformed {
        /// The ConfigMap.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl Inventory {
    /// The entry of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.chunks.iter().find_map(|chunk| chunk.get(key))
    }

    /// Every entry, ordered within its chunk.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flat_map(BTreeMap::values)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Adds an entry, or renews the one that is there.
    pub fn put(&mut self, entry: Entry) {
        let known = self.chunks.iter().position(|chunk| chunk.contains_key(&entry.key));
        let roomy = self.chunks.iter().position(|chunk| chunk.len() < CHUNK_ENTRIES_MAX);
        let index = known.or(roomy).unwrap_or_else(|| {
            self.chunks.push(BTreeMap::new());
            self.chunks.len() - 1
        });
        self.chunks[index].insert(entry.key.clone(), entry);
    }

    /// Notes the identity of an object.
    pub fn identify(&mut self, key: &ObjectKey, uid: &str) {
        let entry = self.chunks.iter_mut().find_map(|chunk| chunk.get_mut(key));
        entry.expect("an object is in the inventory before it is written").uid = Some(uid.to_owned());
    }

    /// Takes an entry out: the object is gone, or someone else's.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.chunks.iter_mut().for_each(|chunk| {
            chunk.remove(key);
        });
    }
}

fn config_maps() -> Arc<Resource> {
    Arc::new(Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
    })
}

fn namespaces() -> Arc<Resource> {
    Arc::new(Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "Namespace".into(),
        plural: "namespaces".into(),
        namespaced: false,
    })
}

fn chunk_key(home: &str, stack: StackId, index: usize) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: Some(home.into()),
        name: format!("inventory-{stack}-{index}"),
    }
}

fn chunk_manifest(home: &str, stack: StackId, index: usize, inventory: &Inventory) -> Value {
    let key = chunk_key(home, stack, index);
    let entries = Kept::all(inventory.chunks.get(index).into_iter().flat_map(BTreeMap::values));
    let entries = serde_json::to_string(&entries).expect("entries are texts under names");
    let mut data = json!({"index": index.to_string(), "entries": entries});
    if index == 0 {
        data["begun"] = json!(json!(inventory.begun).to_string());
        data["applied"] = json!(json!(inventory.applied).to_string());
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": key.name, "namespace": home, "labels": {INVENTORY_LABEL: stack}},
        "data": data,
    })
}

/// Reads the inventory of a stack. A failure is never an empty inventory.
pub async fn load(cluster: &Cluster, stack: StackId) -> Result<Inventory, InventoryError> {
    let found = cluster.read_labelled(&config_maps(), cluster.home(), INVENTORY_LABEL, &stack.to_string()).await?;
    let mut inventory = Inventory::default();
    for config_map in &found {
        read_chunk(config_map, &mut inventory).map_err(|cause| {
            let name = config_map["metadata"]["name"].as_str().unwrap_or("a ConfigMap without a name").to_owned();
            InventoryError::Malformed { name, cause }
        })?;
    }
    Ok(inventory)
}

fn read_chunk(config_map: &Value, inventory: &mut Inventory) -> Result<(), String> {
    let data = |field: &str| config_map["data"][field].as_str().ok_or(format!("data.{field} is missing"));
    let index: usize = data("index")?.parse().map_err(|error| format!("data.index: {error}"))?;
    let entries: Vec<Kept<'_>> =
        serde_json::from_str(data("entries")?).map_err(|error| format!("data.entries: {error}"))?;
    if index == 0 {
        inventory.begun = serde_json::from_str(data("begun")?).map_err(|error| format!("data.begun: {error}"))?;
        // Inventories of earlier agents do not have it.
        let applied = data("applied").unwrap_or("null");
        inventory.applied = serde_json::from_str(applied).map_err(|error| format!("data.applied: {error}"))?;
    }
    while inventory.chunks.len() <= index {
        inventory.chunks.push(BTreeMap::new());
    }
    let entries = entries.into_iter().flat_map(Kept::into_entries);
    inventory.chunks[index] = entries.map(|entry| (entry.key.clone(), entry)).collect();
    Ok(())
}

/// Writes the chunks of `after` that differ from `before`; nothing when nothing differs.
pub async fn save(
    cluster: &Cluster,
    stack: StackId,
    before: &Inventory,
    after: &Inventory,
) -> Result<(), InventoryError> {
    let chunks = after.chunks.len().max(1);
    let changed: Vec<usize> = (0..chunks)
        .filter(|index| {
            let places = |inventory: &Inventory| (inventory.begun, inventory.applied);
            before.chunks.get(*index) != after.chunks.get(*index) || (*index == 0 && places(before) != places(after))
        })
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    if *before == Inventory::default() {
        ensure_namespace(cluster).await?;
    }
    for index in changed {
        let manifest = chunk_manifest(cluster.home(), stack, index, after);
        let (resource, key) = (config_maps(), chunk_key(cluster.home(), stack, index));
        cluster.apply_unseen(&Patch::new(&resource, &key, &manifest), Mode::Real).await?;
    }
    Ok(())
}

/// Removes the inventory of a stack of which nothing is left.
pub async fn discard(cluster: &Cluster, stack: StackId, inventory: &Inventory) -> Result<(), InventoryError> {
    assert!(inventory.is_empty(), "an inventory with entries is never discarded");
    for index in (0..inventory.chunks.len().max(1)).rev() {
        let key = chunk_key(cluster.home(), stack, index);
        if let Some(live) = cluster.metadata(&config_maps(), &key).await? {
            cluster.delete(&config_maps(), &key, &live.uid).await?;
        }
    }
    Ok(())
}

/// Makes the namespace of the agent's own objects. Whoever has one namespace only has it already.
pub async fn ensure_namespace(cluster: &Cluster) -> Result<(), ClusterError> {
    if cluster.scope().is_some() {
        return Ok(());
    }
    let key =
        ObjectKey { group: String::new(), kind: "Namespace".into(), namespace: None, name: INVENTORY_NAMESPACE.into() };
    let resource = namespaces();
    if cluster.metadata(&resource, &key).await?.is_none() {
        let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": INVENTORY_NAMESPACE}});
        cluster.apply_unseen(&Patch::new(&resource, &key, &manifest), Mode::Real).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(number: usize) -> Entry {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("shop".into()),
            name: format!("object-{number}"),
        };
        Entry { key: Arc::new(key), resource: config_maps(), uid: None }
    }

    fn reread(stack: StackId, inventory: &Inventory) -> Inventory {
        let mut again = Inventory::default();
        for index in 0..inventory.chunks.len().max(1) {
            read_chunk(&chunk_manifest(INVENTORY_NAMESPACE, stack, index, inventory), &mut again).unwrap();
        }
        again
    }

    #[test]
    fn ten_thousand_objects_fit_in_chunks_far_below_a_mebibyte() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let mut inventory = Inventory::default();
        (0..10_000).for_each(|number| inventory.put(entry(number)));
        assert_eq!(inventory.chunks.len(), 10);
        for index in 0..10 {
            assert!(chunk_manifest(INVENTORY_NAMESPACE, stack, index, &inventory).to_string().len() < 256 * 1024);
        }
        assert_eq!(reread(stack, &inventory), inventory);
    }

    #[test]
    fn entries_of_every_sort_are_read_as_they_were_written() {
        let stack: StackId = "10000000-0000-4000-8000-000000000000".parse().unwrap();
        let known = Entry { uid: Some("7".into()), ..entry(1) };
        let of_the_cluster = Entry {
            key: Arc::new(ObjectKey {
                group: String::new(),
                kind: "Namespace".into(),
                namespace: None,
                name: "shop".into(),
            }),
            resource: namespaces(),
            uid: None,
        };
        let mut renamed = entry(2);
        Arc::make_mut(&mut renamed.key).kind = "Renamed".into();
        let mut inventory = Inventory::default();
        [entry(0), known, of_the_cluster, renamed].into_iter().for_each(|entry| inventory.put(entry));
        assert_eq!(reread(stack, &inventory), inventory);
    }

    #[test]
    fn what_earlier_agents_wrote_can_be_read() {
        let written = r#"[{"key":{"group":"","kind":"ConfigMap","namespace":"shop","name":"object-1"},
            "resource":{"group":"","version":"v1","kind":"ConfigMap","plural":"configmaps","namespaced":true},"uid":"7"}]"#;
        let config_map = json!({"data": {"index": "0", "entries": written, "begun": "null"}});
        let mut inventory = Inventory::default();
        read_chunk(&config_map, &mut inventory).unwrap();
        assert_eq!(inventory.entries().collect::<Vec<_>>(), [&Entry { uid: Some("7".into()), ..entry(1) }]);
    }

    proptest! {
        /// Whatever is put and removed, an entry stays in its chunk, and a partial write of chunks never loses
        /// an entry that both states have.
        #[test]
        fn no_order_of_partial_writes_loses_an_entry(
            first in prop::collection::vec(0usize..40, 0..40),
            removed in prop::collection::vec(0usize..40, 0..20),
            added in prop::collection::vec(0usize..80, 0..40),
            written in 0usize..4,
        ) {
            let mut before = Inventory::default();
            first.iter().for_each(|number| before.put(entry(*number)));
            let mut after = before.clone();
            removed.iter().for_each(|number| after.remove(&entry(*number).key));
            added.iter().for_each(|number| after.put(entry(*number)));
            let mut partial = before.clone();
            for index in 0..written.min(after.chunks.len()) {
                if partial.chunks.len() <= index { partial.chunks.push(BTreeMap::new()); }
                partial.chunks[index] = after.chunks[index].clone();
            }
            for kept in after.entries().filter(|entry| before.get(&entry.key).is_some()) {
                prop_assert!(partial.get(&kept.key).is_some());
            }
        }
    }
}
