//! The two kinds of writes: applying a declaration, and tracking any other write.

use std::fmt;

use serde_json::{Map, Value};

use crate::compare::compare;
use crate::fieldset::{FieldSet, PathElement};
use crate::managers::{self, Manager, ManagerKey, Managers, ManagersError, Operation};
use crate::merge::merge;
use crate::prune::prune;
use crate::shape::Shape;

/// Manager that gets the fields of an object without managers when it is first applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Metadata that the server sets: never owned, never taken from a declaration.
const SERVER_METADATA: [&str; 7] =
    ["creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Exceptions to [`SERVER_METADATA`] that [`BEFORE_FIRST_APPLY`] may own.
const OWNED_SERVER_METADATA: [&str; 1] = ["deletionTimestamp"];

/// Metadata that identifies the object: part of every declaration, without owner.
const IDENTITY_METADATA: [&str; 2] = ["name", "namespace"];

/// Identity of a writer and the circumstances of its write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// Name of the field manager.
    pub manager: &'a str,
    /// API version of the documents.
    pub api_version: &'a str,
    /// Subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// Time of the write, RFC 3339 in whole seconds.
    pub now: &'a str,
    /// The type's empty object. Creating an object does not make the writer own the fields that are already in it.
    pub blank: &'a Value,
}

impl Writer<'_> {
    fn key(&self, operation: Operation) -> ManagerKey {
        ManagerKey {
            name: self.manager.to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => self.api_version.to_owned(),
            },
            subresource: self.subresource.to_owned(),
        }
    }

    fn manager(&self, fields: FieldSet) -> Manager {
        Manager { api_version: self.api_version.to_owned(), time: self.now.to_owned(), fields }
    }
}

/// A declared field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: ManagerKey,
    /// Path of the field.
    pub path: Vec<PathElement>,
}

impl Conflict {
    /// Returns the field as the API server prints it, such as `.spec.replicas`.
    #[must_use]
    pub fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }

    /// Returns the owning manager as the API server prints it.
    #[must_use]
    pub fn owner(&self) -> String {
        let ManagerKey { name, operation, api_version, subresource } = &self.manager;
        let subresource =
            if subresource.is_empty() { String::new() } else { format!(" with subresource {subresource:?}") };
        match operation {
            Operation::Apply => format!("{name:?}{subresource}"),
            Operation::Update => format!("{name:?}{subresource} using {api_version}"),
        }
    }
}

/// All conflicts of one apply, sorted by manager and field. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(
                formatter,
                "Apply failed with 1 conflict: conflict with {}: {}",
                conflict.owner(),
                conflict.field()
            );
        }
        let mut owners: Vec<(String, Vec<String>)> = Vec::new();
        for conflict in &self.0 {
            match owners.last_mut() {
                Some((owner, fields)) if *owner == conflict.owner() => fields.push(conflict.field()),
                _ => owners.push((conflict.owner(), vec![conflict.field()])),
            }
        }
        let owners: Vec<String> = owners
            .iter()
            .map(|(owner, fields)| format!("conflicts with {owner}:\n- {}", fields.join("\n- ")))
            .collect();
        write!(formatter, "Apply failed with {} conflicts: {}", self.0.len(), owners.join("\n"))
    }
}

/// Reason for which a declaration was not applied.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own declared fields with other values, and force was not set.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The `managedFields` of the live object are malformed.
    #[error(transparent)]
    Managers(#[from] ManagersError),
}

/// Applies a declaration to a live object, or creates the object if there is none.
///
/// If the live object already matches, the result equals it byte for byte.
///
/// # Errors
/// If other managers own declared fields with other values and `force` is false.
pub fn apply(
    shape: &Shape,
    live: Option<&Value>,
    applied: Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let declared = remove_server_metadata(applied);
    let owned = retain_ownable(shape.fields_of(&declared));
    let mut managers = live.map_or_else(|| Ok(Managers::new()), |live| managers::read_with_shape(shape, live))?;
    if let Some(live) = live.filter(|_| managers.is_empty()) {
        let before = Writer { manager: BEFORE_FIRST_APPLY, ..*writer };
        let fields = retain_ownable(compare(shape, writer.blank, live).into_added_or_modified());
        managers.insert(before.key(Operation::Update), before.manager(fields));
    }
    let key = writer.key(Operation::Apply);
    let previous = managers.remove(&key);

    let Some(live) = live else {
        let mut object = declared;
        managers.insert(key, writer.manager(owned));
        managers::write(&mut object, managers);
        return Ok(object);
    };
    let mut object = merge(shape, live, &declared);
    if let Some(previous) = previous.as_ref().filter(|previous| may_prune(&declared, &owned, &previous.fields)) {
        let mut kept = shape.fields_of(&declared);
        managers.values().for_each(|manager| kept.add(&manager.fields));
        object = prune(shape, &object, &previous.fields, &kept);
    }
    let mut changes = compare(shape, live, &object);
    let removed = std::mem::take(&mut changes.removed);
    let changed = changes.into_added_or_modified();
    let conflicts = find_conflicts(&managers, &changed);
    if !conflicts.is_empty() && !force {
        return Err(ApplyError::Conflicts(Conflicts(conflicts)));
    }
    // The applier takes ownership of the changed fields. Removed fields (declared null, or no longer declared by any
    // manager) lose all owners.
    for manager in managers.values_mut() {
        manager.fields.subtract(&changed);
        manager.fields.subtract(&removed);
    }
    // An applier that only becomes a further owner of existing values keeps its previous time, or has none.
    let manager = if has_same_content(&object, live) {
        let time = previous.map(|previous| previous.time).unwrap_or_default();
        Manager { api_version: writer.api_version.to_owned(), time, fields: owned }
    } else {
        writer.manager(owned)
    };
    managers.insert(key, manager);
    managers::write(&mut object, managers);
    Ok(object)
}

/// True if pruning could remove a field: one is no longer declared, or is declared as null or empty. (An empty declaration
/// owns a field without showing in the field's content.)
fn may_prune(declared: &Value, owned: &FieldSet, last: &FieldSet) -> bool {
    !last.difference(owned).is_empty() || contains_empty_value(declared)
}

fn contains_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty() || map.values().any(contains_empty_value),
        Value::Array(list) => list.is_empty() || list.iter().any(contains_empty_value),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Tracks a write that is not an apply: the writer becomes the only owner of the fields that it changed.
///
/// `updated` is the object as it will be stored, `live` the object before. An empty list of managers in `updated` resets
/// the tracking.
///
/// # Errors
/// If the live object's `managedFields` are malformed.
pub fn track_update(
    shape: &Shape,
    live: Option<&Value>,
    updated: &Value,
    writer: &Writer<'_>,
) -> Result<Value, ManagersError> {
    let reset = updated
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .is_some_and(|entries| entries.iter().all(|entry| entry.as_object().is_some_and(serde_json::Map::is_empty)));
    let mut managers = match live {
        Some(live) if !reset => managers::read_with_shape(shape, live)?,
        _ => Managers::new(),
    };
    // An object whose managers were removed stays untracked until its next apply.
    if managers.is_empty() && live.is_some() {
        let mut object = updated.clone();
        managers::write(&mut object, managers);
        return Ok(object);
    }
    let changes = compare(shape, live.unwrap_or(writer.blank), updated);
    for manager in managers.values_mut() {
        manager.fields.subtract(&changes.removed);
    }
    let mut changed = retain_ownable(changes.into_added_or_modified());
    for manager in managers.values_mut() {
        manager.fields.subtract(&changed);
    }
    if !changed.is_empty() {
        let key = writer.key(Operation::Update);
        if let Some(previous) = managers.get(&key) {
            changed.add(&previous.fields);
        }
        managers.insert(key, writer.manager(changed));
    }
    let mut object = updated.clone();
    managers::write(&mut object, managers);
    Ok(object)
}

/// Removes the metadata that the server sets from a declaration.
fn remove_server_metadata(mut applied: Value) -> Value {
    if let Some(metadata) = managers::metadata_mut(&mut applied) {
        for name in SERVER_METADATA {
            metadata.remove(name);
        }
    }
    applied
}

/// Removes the fields that have no owner from a set: the object's identity, and metadata that the server sets.
fn retain_ownable(mut fields: FieldSet) -> FieldSet {
    fields.nodes.retain(|element, node| match element {
        PathElement::Field(name) if name == "apiVersion" || name == "kind" => false,
        PathElement::Field(name) if name == "metadata" => {
            node.member = false;
            node.below.nodes.retain(|element, _| is_ownable_metadata(element));
            !node.below.is_empty()
        }
        _ => true,
    });
    fields
}

fn is_ownable_metadata(element: &PathElement) -> bool {
    let PathElement::Field(name) = element else { return true };
    let name = name.as_str();
    let is_set_by_server = SERVER_METADATA.contains(&name) && !OWNED_SERVER_METADATA.contains(&name);
    !is_set_by_server && !IDENTITY_METADATA.contains(&name)
}

fn find_conflicts(managers: &Managers, changed: &FieldSet) -> Vec<Conflict> {
    let shared = managers.iter().map(|(key, manager)| (key, manager.fields.intersection(changed)));
    let mut shared: Vec<(&ManagerKey, FieldSet)> = shared.filter(|(_, fields)| !fields.is_empty()).collect();
    shared.sort_by_cached_key(|(key, _)| key.identity());
    let conflicts = shared
        .into_iter()
        .flat_map(|(key, fields)| fields.paths().into_iter().map(|path| Conflict { manager: key.clone(), path }));
    conflicts.collect()
}

/// True if two objects are equal except for their `managedFields`.
fn has_same_content(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let same_metadata = match (one.get("metadata"), other.get("metadata")) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => are_equal_except(one, other, "managedFields"),
        (one, other) => one == other,
    };
    same_metadata && are_equal_except(one, other, "metadata")
}

/// True if two maps are equal except for one field.
fn are_equal_except(one: &Map<String, Value>, other: &Map<String, Value>, name: &str) -> bool {
    let rest = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(name));
    rest(one) == rest(other) && one.iter().all(|(field, value)| field == name || other.get(field) == Some(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Documents of a type with a struct, a map, a keyed list, a set, an atomic map, and undeclared fields.
    fn documents() -> impl Strategy<Value = Value> {
        let word = || prop::sample::select(vec!["a", "b", "c"]);
        let words = move || prop::collection::btree_map(word(), word(), 0..3);
        let parts = prop::collection::btree_map(word(), word(), 0..3).prop_map(|parts| {
            let part = |(id, size): (&str, &str)| json!({"id": id, "size": size});
            Value::Array(parts.into_iter().map(part).collect())
        });
        let tags = prop::collection::btree_set(word(), 0..3);
        // Empty documents are frequent, because they are the most likely to lose fields.
        let chosen = prop_oneof![Just(0), Just(u8::MAX), any::<u8>()];
        let whole = (words(), parts, tags, words(), words(), chosen);
        whole.prop_map(|(map, parts, tags, atomic, other, chosen)| {
            let inner = json!({"map": map, "parts": parts, "tags": tags, "atomic": atomic, "other": other});
            let fields = inner.as_object().into_iter().flatten().enumerate();
            let kept = fields.filter(|(index, _)| chosen & (1 << index) != 0);
            let spec: serde_json::Map<String, Value> =
                kept.map(|(_, (name, value))| (name.clone(), value.clone())).collect();
            json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
        })
    }

    fn shape() -> Shape {
        let text = json!({"type": "string"});
        Shape::from_schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "map": {"type": "object", "additionalProperties": text},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "properties": {"id": text, "size": text}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        }}}}))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

        #[test]
        fn prune_changes_nothing_unless_may_prune_is_true(live in documents(), declared in documents(), before in documents()) {
            let shape = shape();
            let (all, last) = (shape.fields_of(&declared), retain_ownable(shape.fields_of(&before)));
            let last = last.intersection(&retain_ownable(all.clone()));
            prop_assume!(!may_prune(&declared, &retain_ownable(all.clone()), &last));
            let merged = merge(&shape, &live, &declared);
            prop_assert_eq!(prune(&shape, &merged, &last, &all), merged);
        }
    }
}
