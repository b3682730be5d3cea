//! Objects as clients get them: in the version that they asked for, whole, as metadata, or as rows.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::media::Form;
use crate::pointer::text;
use crate::registry::Target;
use crate::table;
use crate::validate::schema;

/// A stored object in the version of the request. Of an instance only what that version knows is shown, with its
/// defaults, as with the strategy `None`.
pub(crate) fn convert(target: &Target, object: &Arc<Value>) -> Arc<Value> {
    let wanted = target.api_version();
    if text(object, "/apiVersion") == wanted {
        return object.clone();
    }
    let mut converted = Value::clone(object);
    converted["apiVersion"] = json!(wanted);
    if let Some(rules) = &target.version.schema {
        schema::prune(rules, &mut converted);
        schema::fill_defaults(rules, &mut converted);
    }
    Arc::new(converted)
}

/// One object.
pub(crate) fn object(target: &Target, form: Form, now: Timestamp, object: &Arc<Value>) -> Value {
    match form {
        Form::Object => Value::clone(&convert(target, object)),
        Form::Metadata => partial(object),
        Form::Table(include) => {
            let version = object.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
            table::table(target, include, now, std::slice::from_ref(object), json!({ "resourceVersion": version }))
        }
    }
}

/// A list of objects.
pub(crate) fn list(target: &Target, form: Form, now: Timestamp, objects: &[Arc<Value>], metadata: Value) -> Value {
    match form {
        Form::Object => {
            let items: Vec<Value> = objects.iter().map(|object| list_item(target, object)).collect();
            let kind = &target.resource.list_kind;
            let mut metadata = metadata;
            if target.resource.custom && metadata.get("continue").is_none() {
                metadata["continue"] = json!("");
            }
            json!({"kind": kind, "apiVersion": target.api_version(), "metadata": metadata, "items": items})
        }
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(|object| partial(object)).collect();
            // Unlike every other list, an empty one of metadata is null.
            let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items})
        }
        Form::Table(include) => table::table(target, include, now, objects, metadata),
    }
}

/// The items of a typed list do not repeat their type; those of custom resources do.
fn list_item(target: &Target, object: &Arc<Value>) -> Value {
    let mut item = Value::clone(&convert(target, object));
    if let (false, Some(map)) = (target.resource.custom, item.as_object_mut()) {
        map.remove("kind");
        map.remove("apiVersion");
    }
    item
}

/// The metadata of an object.
pub(crate) fn partial(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}
