//! Serializes objects and lists for responses: whole, as metadata, or as tables.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::convert::{META_VERSION, convert, is_in_version, metadata_of};
use crate::http::media::{Include, Representation};
use crate::object::fields::value_at;
use crate::object::stored::{Stored, Text, append};
use crate::printing::table;
use crate::registry::resource::Target;

/// Serializes one object.
pub(crate) fn object(target: &Target, form: Representation, now: Timestamp, object: &Stored) -> Bytes {
    match form {
        Representation::Object if is_in_version(target, object) => object.text().json().clone(),
        Representation::Object => convert(target, object).to_string().into(),
        Representation::Metadata => {
            let mut json = Vec::new();
            append_partial(object, &mut json);
            json.into()
        }
        Representation::Table(include) => table(target, include, now, object).to_string().into(),
    }
}

/// Returns one object as a table.
pub(crate) fn table(target: &Target, include: Include, now: Timestamp, object: &Stored) -> Value {
    let version = value_at(object, "/metadata/resourceVersion").cloned().unwrap_or_default();
    table::table(target, include, now, &[object.object()], json!({ "resourceVersion": version }))
}

/// Serializes a list from the texts of its items, with sorted fields.
pub(crate) fn list(
    target: &Target,
    form: Representation,
    now: Timestamp,
    objects: &[Arc<Stored>],
    mut metadata: Value,
) -> Bytes {
    let mut json = Vec::new();
    match form {
        Representation::Object => {
            if target.resource.custom && metadata.get("continue").is_none() {
                metadata["continue"] = json!("");
            }
            json.reserve(objects.iter().map(|object| object.text().json().len() + 1).sum());
            let items =
                |json: &mut Vec<u8>| append_all(objects, json, |object, json| append_item(target, object, json));
            append_list(&mut json, &target.api_version(), items, &target.resource.list_kind, &metadata);
        }
        Representation::Metadata => {
            // Unlike in other lists, the items of an empty metadata list are null.
            let items = |json: &mut Vec<u8>| match objects {
                [] => json.extend_from_slice(b"null"),
                objects => append_all(objects, json, |object, json| {
                    // Lists are repeated: the text that is serialized here is reused by the next one.
                    object.text();
                    append_partial(object, json);
                }),
            };
            append_list(&mut json, META_VERSION, items, "PartialObjectMetadataList", &metadata);
        }
        Representation::Table(include) => {
            let objects: Vec<Arc<Value>> = objects.iter().map(|object| object.object()).collect();
            append(&mut json, &table::table(target, include, now, &objects, metadata));
        }
    }
    json.into()
}

fn append_list(json: &mut Vec<u8>, version: &str, items: impl FnOnce(&mut Vec<u8>), kind: &str, metadata: &Value) {
    json.extend_from_slice(b"{\"apiVersion\":");
    append(json, version);
    json.extend_from_slice(b",\"items\":");
    items(json);
    json.extend_from_slice(b",\"kind\":");
    append(json, kind);
    json.extend_from_slice(b",\"metadata\":");
    append(json, metadata);
    json.push(b'}');
}

fn append_all(objects: &[Arc<Stored>], json: &mut Vec<u8>, item: impl Fn(&Stored, &mut Vec<u8>)) {
    json.push(b'[');
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        item(object, json);
    }
    json.push(b']');
}

/// Appends an item. Items of built-in kinds have no `apiVersion` and `kind`; custom resources have.
fn append_item(target: &Target, object: &Stored, json: &mut Vec<u8>) {
    let converted = (!is_in_version(target, object)).then(|| Text::write(&convert(target, object)));
    let text = converted.as_ref().unwrap_or_else(|| object.text());
    if target.resource.custom {
        json.extend_from_slice(text.json());
    } else {
        text.append_untyped(json);
    }
}

/// Appends an object as `PartialObjectMetadata`.
fn append_partial(object: &Stored, json: &mut Vec<u8>) {
    json.extend_from_slice(b"{\"apiVersion\":");
    append(json, META_VERSION);
    json.extend_from_slice(b",\"kind\":\"PartialObjectMetadata\",\"metadata\":");
    match metadata_of(object) {
        // The whole object is not serialized for its metadata: of many objects only the metadata is read.
        Some(Cow::Borrowed(metadata)) => match object.written() {
            Some(text) => json.extend_from_slice(text.metadata()),
            None => append(json, metadata),
        },
        Some(Cow::Owned(shown)) => append(json, &shown),
        None => json.extend_from_slice(b"{}"),
    }
    json.push(b'}');
}
