//! Objects in the version of a request, and their metadata alone.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::object::fields::{group_version, string_at};
use crate::registry::conversion;
use crate::registry::resource::Target;
use crate::schema::custom_resource;

pub(super) const META_VERSION: &str = "meta.k8s.io/v1";

/// True if a stored object is in the version of the request.
pub(super) fn is_in_version(target: &Target, object: &Value) -> bool {
    group_version(string_at(object, "/apiVersion")) == (target.resource.group.as_str(), target.version.name.as_str())
}

/// Returns a stored object in the version of the request. A built-in kind is converted; a custom resource is pruned and
/// defaulted by the schema of that version; one that a webhook has converted is only pruned.
pub(crate) fn convert(target: &Target, object: &Arc<Value>) -> Arc<Value> {
    if is_in_version(target, object) {
        return object.clone();
    }
    if !target.resource.custom {
        return Arc::new(conversion::to_request_version(target, object));
    }
    let api_version = target.api_version();
    let by_webhook = target.resource.conversion.as_ref().and_then(|webhook| webhook.find(object, &api_version));
    let has_defaults = by_webhook.is_none();
    let mut converted = by_webhook.unwrap_or_else(|| Value::clone(object));
    converted["apiVersion"] = json!(api_version);
    if let Some(rules) = &target.version.schema {
        custom_resource::prune(rules, &mut converted);
        if has_defaults {
            custom_resource::fill_defaults(rules, &mut converted);
        }
    }
    Arc::new(converted)
}

/// Returns the metadata of an object, without the annotation that a daemon set has only in its served version.
pub(super) fn metadata_of(object: &Value) -> Option<Cow<'_, Value>> {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let metadata = object.get("metadata")?;
    if string_at(object, "/kind") != "DaemonSet"
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

/// Returns the metadata of an object as `PartialObjectMetadata`.
pub(crate) fn partial(object: &Value) -> Value {
    let metadata = metadata_of(object).map_or_else(|| Value::Object(Map::new()), Cow::into_owned);
    json!({"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": metadata})
}
