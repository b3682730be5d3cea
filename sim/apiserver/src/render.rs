//! Objects as clients get them: in the version that they asked for, whole, as metadata, or as rows.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::conversion;
use crate::media::Form;
use crate::pointer::text;
use crate::registry::Target;
use crate::table;
use crate::validate::schema;

/// A stored object in the version of the request. A built-in kind says the same in other words; of an instance only what that version knows is shown, with its
/// defaults, as with the strategy `None`.
pub(crate) fn convert(target: &Target, object: &Arc<Value>) -> Arc<Value> {
    let wanted = target.api_version();
    if text(object, "/apiVersion") == wanted {
        return object.clone();
    }
    if !target.resource.custom {
        return Arc::new(conversion::shown(target, object));
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

/// A list of objects, as JSON. Its items are written where they are: a copy of each would cost more than all the rest.
pub(crate) fn list(target: &Target, form: Form, now: Timestamp, objects: &[Arc<Value>], mut metadata: Value) -> String {
    match form {
        Form::Object => {
            let items: Vec<Arc<Value>> = objects.iter().map(|object| convert(target, object)).collect();
            let items: Vec<Item<'_>> =
                items.iter().map(|object| Item { object, is_typed: target.resource.custom }).collect();
            if target.resource.custom && metadata.get("continue").is_none() {
                metadata["continue"] = json!("");
            }
            List { api_version: &target.api_version(), items, kind: &target.resource.list_kind, metadata }.written()
        }
        Form::Metadata => {
            let items: Vec<Partial<'_>> = objects.iter().map(|object| Partial::of(object)).collect();
            // Unlike every other list, an empty one of metadata is null.
            let items = (!items.is_empty()).then_some(items);
            List { api_version: META_VERSION, items, kind: "PartialObjectMetadataList", metadata }.written()
        }
        Form::Table(include) => table::table(target, include, now, objects, metadata).to_string(),
    }
}

const META_VERSION: &str = "meta.k8s.io/v1";

/// A list; its fields are in the order in which every object is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, T> {
    api_version: &'a str,
    items: T,
    kind: &'a str,
    metadata: Value,
}

impl<T: Serialize> List<'_, T> {
    fn written(&self) -> String {
        serde_json::to_string(self).expect("texts and values can always be written")
    }
}

/// The items of a typed list do not repeat their type; those of custom resources do.
struct Item<'a> {
    object: &'a Value,
    is_typed: bool,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.object.as_object().into_iter().flatten();
        let of_type = |name: &str| name == "kind" || name == "apiVersion";
        serializer.collect_map(fields.filter(|(name, _)| self.is_typed || !of_type(name)))
    }
}

/// The metadata of an object, as an item.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partial<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Option<Cow<'a, Value>>,
}

impl<'a> Partial<'a> {
    fn of(object: &'a Value) -> Self {
        Self { api_version: META_VERSION, kind: "PartialObjectMetadata", metadata: metadata_of(object) }
    }
}

/// The metadata of an object, without the annotation that a daemon set has only in the version that is served.
fn metadata_of(object: &Value) -> Option<Cow<'_, Value>> {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let metadata = object.get("metadata")?;
    if text(object, "/kind") != "DaemonSet" || metadata.pointer(&format!("/annotations/{COUNT}")).is_none() {
        return Some(Cow::Borrowed(metadata));
    }
    let mut shown = metadata.clone();
    if let Some(annotations) = shown.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(COUNT);
        if annotations.is_empty() {
            shown.as_object_mut().map(|fields| fields.remove("annotations"));
        }
    }
    Some(Cow::Owned(shown))
}

/// The metadata of an object.
pub(crate) fn partial(object: &Value) -> Value {
    let metadata = metadata_of(object).map_or_else(|| Value::Object(Map::new()), Cow::into_owned);
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}
