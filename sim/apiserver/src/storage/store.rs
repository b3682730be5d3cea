//! The store: the current objects, the revision counter, and the recent history that watches read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::object::fields::{array_at, metadata, string_at};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;

/// Largest number of events in the history, independent of their age.
const HISTORY_EVENTS_MAX: usize = 100_000;

/// One stored object.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Arc<StoredKey>,
    pub(crate) object: Arc<Stored>,
    /// True if it was not changed since its creation.
    pub(crate) is_new: bool,
}

/// A change of the store, as watches read it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) at: Timestamp,
    pub(crate) key: Arc<StoredKey>,
    pub(crate) before: Option<Arc<Stored>>,
    /// Object after the change; if it was removed, its last state with the revision of the removal.
    pub(crate) object: Arc<Stored>,
    pub(crate) gone: bool,
}

/// Namespace and name. Cluster-scoped objects have an empty namespace.
pub(crate) type NamespacedName = (String, String);

/// Objects of one resource, sorted by namespace and name.
pub(crate) type Collection = BTreeMap<NamespacedName, Entry>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// Collections by group and plural, in nested maps so that a lookup need not allocate a key.
    collections: BTreeMap<String, BTreeMap<String, Collection>>,
    revision: u64,
    history: VecDeque<Event>,
    /// Keys of the dependents, by the UID of their owner.
    dependents: BTreeMap<String, BTreeSet<Arc<StoredKey>>>,
    /// Newest revision whose event is no longer in the history.
    compacted: u64,
}

fn namespaced_name(namespace: Option<&str>, name: &str) -> NamespacedName {
    (namespace.unwrap_or_default().to_owned(), name.to_owned())
}

/// Returns the range of keys of a namespace, which ends before the next possible namespace.
pub(crate) fn namespace_range(namespace: &str) -> Range<NamespacedName> {
    namespaced_name(Some(namespace), "")..namespaced_name(Some(&format!("{namespace}\0")), "")
}

impl Store {
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn collection(&self, group: &str, plural: &str) -> Option<&Collection> {
        self.collections.get(group)?.get(plural)
    }

    pub(crate) fn get(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Option<&Entry> {
        self.collection(group, plural)?.get(&namespaced_name(namespace, name))
    }

    /// Returns one object without its key.
    pub(crate) fn find(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Option<&Arc<Value>> {
        self.get(group, plural, namespace, name).map(|entry| &**entry.object)
    }

    /// Returns the object with this key.
    pub(crate) fn find_key(&self, key: &StoredKey) -> Option<&Arc<Value>> {
        self.find(&key.group, &key.plural, key.namespace.as_deref(), &key.name)
    }

    /// Returns the objects of one resource in one namespace, in order.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        group: &str,
        plural: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Entry> + 'a {
        let collection = self.collection(group, plural).into_iter();
        collection.flat_map(move |collection| collection.range(namespace_range(namespace))).map(|(_, entry)| entry)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.collections.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    /// Returns the number of objects of each resource, with its group and plural.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.collections.iter().flat_map(|(group, collections)| {
            collections.iter().map(move |(plural, collection)| (group.as_str(), plural.as_str(), collection.len()))
        })
    }

    /// Returns the events after a revision, in order.
    pub(crate) fn events_after(&self, revision: u64) -> impl Iterator<Item = &Event> {
        let start = self.history.partition_point(|event| event.revision <= revision);
        self.history.range(start..)
    }

    /// Returns the objects of one resource at a revision that is not compacted.
    pub(crate) fn collection_at(&self, group: &str, plural: &str, revision: u64) -> Collection {
        let mut collection = self.collection(group, plural).cloned().unwrap_or_default();
        let later: Vec<&Event> = self.events_after(revision).collect();
        for event in later.into_iter().rev().filter(|event| event.key.group == group && event.key.plural == plural) {
            let place = namespaced_name(event.key.namespace.as_deref(), &event.key.name);
            match &event.before {
                None => drop(collection.remove(&place)),
                Some(before) => {
                    let entry = Entry { key: event.key.clone(), object: before.clone(), is_new: false };
                    drop(collection.insert(place, entry));
                }
            }
        }
        collection
    }

    /// Stores an object under the next revision and returns it as stored.
    pub(crate) fn put(&mut self, at: Timestamp, key: StoredKey, mut object: Value) -> Event {
        self.revision += 1;
        metadata(&mut object).insert("resourceVersion".to_owned(), json!(self.revision.to_string()));
        let object = Arc::new(Stored::new(object));
        let place = namespaced_name(key.namespace.as_deref(), &key.name);
        let collection = self.collections.entry(key.group.clone()).or_default().entry(key.plural.clone()).or_default();
        let previous = collection.get(&place);
        let key = previous.map_or_else(|| Arc::new(key), |entry| entry.key.clone());
        let before = previous.map(|entry| entry.object.clone());
        let is_new = before.is_none();
        collection.insert(place, Entry { key: key.clone(), object: object.clone(), is_new });
        self.record(Event { revision: self.revision, at, key, before, object, gone: false })
    }

    /// Adds an object with its own resourceVersion, as if it had been stored long ago.
    pub(crate) fn load(&mut self, key: Arc<StoredKey>, object: Arc<Stored>) {
        let place = namespaced_name(key.namespace.as_deref(), &key.name);
        let event = Event {
            revision: 0,
            at: Timestamp::UNIX_EPOCH,
            key: key.clone(),
            before: None,
            object: object.clone(),
            gone: false,
        };
        self.index_owners(&event);
        let collection = self.collections.entry(key.group.clone()).or_default().entry(key.plural.clone()).or_default();
        collection.insert(place, Entry { key, object, is_new: false });
    }

    /// Sets the revision after objects were loaded; there is no history before it.
    pub(crate) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
        self.compact_all();
    }

    /// Rewrites the stored objects of a resource without a new revision, as if they were decoded by a new schema.
    pub(crate) fn rewrite_all(&mut self, group: &str, plural: &str, read: impl Fn(&mut Value)) {
        let collection = self.collections.get_mut(group).and_then(|collections| collections.get_mut(plural));
        for entry in collection.into_iter().flat_map(BTreeMap::values_mut) {
            let mut object = Value::clone(&entry.object);
            read(&mut object);
            entry.object = Arc::new(Stored::new(object));
        }
    }

    /// Drops the objects of a resource without a new revision, as if they had never been stored.
    pub(crate) fn forget_all(&mut self, group: &str, plural: &str) {
        self.collections.get_mut(group).and_then(|collections| collections.remove(plural));
        self.history.retain(|event| event.key.group != group || event.key.plural != plural);
    }

    /// Removes an object. `None` if it does not exist.
    pub(crate) fn remove(&mut self, at: Timestamp, key: &StoredKey) -> Option<Event> {
        let collection = self.collections.get_mut(&key.group)?.get_mut(&key.plural)?;
        let entry = collection.remove(&namespaced_name(key.namespace.as_deref(), &key.name))?;
        self.revision += 1;
        let mut last = Value::clone(&entry.object);
        metadata(&mut last).insert("resourceVersion".to_owned(), json!(self.revision.to_string()));
        let before = Some(entry.object);
        Some(self.record(Event {
            revision: self.revision,
            at,
            key: entry.key,
            before,
            object: Arc::new(Stored::new(last)),
            gone: true,
        }))
    }

    /// Returns the objects with an owner reference to this UID.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Arc<StoredKey>> {
        self.dependents.get(uid).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    fn index_owners(&mut self, event: &Event) {
        let owners = |object: &Value| -> Vec<String> {
            array_at(object, "/metadata/ownerReferences")
                .iter()
                .map(|owner| string_at(owner, "/uid").to_owned())
                .collect()
        };
        for uid in event.before.iter().flat_map(|before| owners(before)) {
            if let Some(keys) = self.dependents.get_mut(&uid) {
                keys.remove(&event.key);
                if keys.is_empty() {
                    self.dependents.remove(&uid);
                }
            }
        }
        if !event.gone {
            for uid in owners(&event.object) {
                self.dependents.entry(uid).or_default().insert(event.key.clone());
            }
        }
    }

    fn record(&mut self, event: Event) -> Event {
        self.index_owners(&event);
        assert!(self.history.back().is_none_or(|last| last.revision < event.revision), "revisions only grow");
        self.history.push_back(event.clone());
        if self.history.len() > HISTORY_EVENTS_MAX {
            self.drop_oldest();
        }
        event
    }

    /// Drops the events that are older than `age`.
    pub(crate) fn compact(&mut self, now: Timestamp, age: SignedDuration) {
        while self.history.front().is_some_and(|event| now.duration_since(event.at) > age) {
            self.drop_oldest();
        }
    }

    /// Drops every event.
    pub(crate) fn compact_all(&mut self) {
        self.history.clear();
        self.compacted = self.revision;
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.history.pop_front() {
            self.compacted = event.revision;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_with_a_common_prefix_are_separate() {
        let mut store = Store::default();
        for namespace in ["a", "a-b", "a0", "aa", "b"] {
            let key = StoredKey {
                group: String::new(),
                version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                plural: "configmaps".to_owned(),
                namespace: Some(namespace.to_owned()),
                name: "x".to_owned(),
            };
            store.put(Timestamp::UNIX_EPOCH, key, json!({}));
        }
        let here: Vec<_> = store.in_namespace("", "configmaps", "a").map(|entry| &entry.key.namespace).collect();
        assert_eq!(here, [&Some("a".to_owned())]);
    }
}
