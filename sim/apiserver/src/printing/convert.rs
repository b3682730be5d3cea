//! Objects in the version of a request, and their metadata alone.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::object::fields::{at, group_version, text};
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::schema::custom_resource;

pub(super) const META_VERSION: &str = "meta.k8s.io/v1";

/// Whether a stored object is in the version of the request.
pub(super) fn is_in_version(target: &Target, object: &Value) -> bool {
    group_version(text(object, "/apiVersion")) == (target.resource.group.as_str(), target.version.name.as_str())
}

/// A stored object in the version of the request. A built-in kind says the same in other words; of an instance only what that
/// version knows is shown, with its
/// defaults, as with the strategy `None`.
pub(crate) fn convert(target: &Target, object: &Arc<Value>) -> Arc<Value> {
    if is_in_version(target, object) {
        return object.clone();
    }
    if !target.resource.custom {
        return Arc::new(conversion::to_request_version(target, object));
    }
    let mut converted = Value::clone(object);
    converted["apiVersion"] = json!(target.api_version());
    if let Some(rules) = &target.version.schema {
        custom_resource::prune(rules, &mut converted);
        custom_resource::fill_defaults(rules, &mut converted);
    }
    Arc::new(converted)
}

/// The metadata of an object, without the annotation that a daemon set has only in the version that is served.
pub(super) fn metadata_of(object: &Value) -> Option<Cow<'_, Value>> {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let metadata = object.get("metadata")?;
    if text(object, "/kind") != "DaemonSet"
        || metadata.get("annotations").and_then(|annotations| annotations.get(COUNT)).is_none()
    {
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
    json!({"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": metadata})
}
