//! The managers of an object: reading and writing `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::fieldset::{FieldSet, FieldSetError};
use crate::reconcile::reconcile;
use crate::shape::Shape;

/// More update managers than this are merged into one, as the real server does.
const UPDATE_MANAGERS_MAX: usize = 10;

/// Name of the manager that gets the fields of merged update managers.
const MERGED_UPDATER: &str = "ancient-changes";

/// Kind of write by which a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply: the manager owns what it declared last.
    Apply,
    /// Any other write: the manager owns what it changed.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Identity of a manager. An applier has the same key in every API version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerKey {
    /// Name that the client gave, or the first part of its user agent.
    pub name: String,
    /// Kind of its writes.
    pub operation: Operation,
    /// API version of an updater's writes; empty for appliers.
    pub api_version: String,
    /// Subresource that it wrote to; empty for the object itself.
    pub subresource: String,
}

impl ManagerKey {
    /// Returns the text by which the real server identifies managers. Conflicts are sorted by it.
    pub(crate) fn identity(&self) -> String {
        let part = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(",\"{name}\":{value:?}"),
        };
        let (version, subresource) = (part("apiVersion", &self.api_version), part("subresource", &self.subresource));
        format!("{{\"manager\":{:?},\"operation\":{:?}{version}{subresource}}}", self.name, self.operation.as_str())
    }
}

/// Fields that one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// API version of the paths.
    pub api_version: String,
    /// Time of the last change of its fields, as written in the object.
    pub time: String,
    /// The owned fields.
    pub fields: FieldSet,
}

/// Malformed `metadata.managedFields`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManagersError {
    /// The list or an entry of it has the wrong type.
    #[error("metadata.managedFields is not a list of entries")]
    NotEntries,
    /// The operation of an entry is neither `Apply` nor `Update`.
    #[error("invalid operation `{0}`")]
    Operation(String),
    /// The fields of an entry are malformed.
    #[error(transparent)]
    Fields(#[from] FieldSetError),
}

/// The managers of one object.
pub type Managers = BTreeMap<ManagerKey, Manager>;

/// Reads the managers of an object and converts their fields to the current schema.
pub(crate) fn read_with_shape(shape: &Shape, object: &Value) -> Result<Managers, ManagersError> {
    let mut managers = read(object)?;
    for manager in managers.values_mut() {
        if let Some(fields) = reconcile(shape, &manager.fields) {
            manager.fields = fields;
        }
    }
    Ok(managers)
}

/// Reads the managers of an object.
pub(crate) fn read(object: &Value) -> Result<Managers, ManagersError> {
    let Some(entries) = object.pointer("/metadata/managedFields").filter(|entries| !entries.is_null()) else {
        return Ok(Managers::new());
    };
    let entries = entries.as_array().ok_or(ManagersError::NotEntries)?;
    let mut managers = Managers::new();
    for entry in entries {
        let map = entry.as_object().ok_or(ManagersError::NotEntries)?;
        if map.is_empty() {
            continue;
        }
        let text = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            other => return Err(ManagersError::Operation(other.to_owned())),
        };
        let fields = FieldSet::from_fields_v1(map.get("fieldsV1").unwrap_or(&json!({})))?;
        let api_version = text("apiVersion");
        let key = ManagerKey {
            name: text("manager"),
            operation,
            api_version: if operation == Operation::Apply { String::new() } else { api_version.clone() },
            subresource: text("subresource"),
        };
        managers.insert(key, Manager { api_version, time: text("time"), fields });
    }
    Ok(managers)
}

/// Writes the managers into an object. Managers without fields are dropped, and surplus updaters are merged into one.
pub(crate) fn write(object: &mut Value, mut managers: Managers) {
    managers.retain(|_, manager| !manager.fields.is_empty());
    merge_oldest_updaters(&mut managers);
    let mut entries: Vec<(&ManagerKey, &Manager)> = managers.iter().collect();
    entries.sort_by_key(|(key, manager)| {
        (key.operation, &manager.time, &key.name, &manager.api_version, &key.subresource)
    });
    let entries: Vec<Value> = entries.into_iter().map(|(key, manager)| to_entry(key, manager)).collect();
    let Some(metadata) = metadata_mut(object) else {
        return;
    };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

fn to_entry(key: &ManagerKey, manager: &Manager) -> Value {
    let mut entry = Map::new();
    let mut put = |name: &str, text: &str| entry.insert(name.to_owned(), Value::String(text.to_owned()));
    put("manager", &key.name);
    put("operation", key.operation.as_str());
    put("apiVersion", &manager.api_version);
    if !manager.time.is_empty() {
        put("time", &manager.time);
    }
    put("fieldsType", "FieldsV1");
    if !key.subresource.is_empty() {
        put("subresource", &key.subresource);
    }
    entry.insert("fieldsV1".to_owned(), manager.fields.to_fields_v1());
    Value::Object(entry)
}

/// Returns the metadata of an object, created if it has none.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.as_object_mut()?.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
}

fn merge_oldest_updaters(managers: &mut Managers) {
    let mut updaters: Vec<ManagerKey> =
        managers.keys().filter(|key| key.operation == Operation::Update).cloned().collect();
    if updaters.len() <= UPDATE_MANAGERS_MAX {
        return;
    }
    updaters.sort_by_key(|key| managers.get(key).map(|manager| manager.time.clone()));
    // One more than the surplus, because the merged managers are replaced by one manager per API version.
    for key in updaters.iter().take(updaters.len() - UPDATE_MANAGERS_MAX + 1) {
        let Some(old) = managers.remove(key) else {
            continue;
        };
        let merged_key = ManagerKey { name: MERGED_UPDATER.to_owned(), subresource: String::new(), ..key.clone() };
        match managers.get_mut(&merged_key) {
            None => drop(managers.insert(merged_key, old)),
            Some(merged) => {
                merged.fields = merged.fields.union(&old.fields);
                merged.time = merged.time.clone().max(old.time);
            }
        }
    }
}
