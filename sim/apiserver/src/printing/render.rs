//! Objects as clients get them: in the version that they asked for, whole, as metadata, or as rows.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::convert::{META_VERSION, convert, is_in_version, metadata_of};
use crate::http::media::{Form, Include};
use crate::object::fields::{at, group_version, text};
use crate::object::stored::{Stored, Text, append};
use crate::printing::table;
use crate::registry::resource::Target;

/// One object, as JSON.
pub(crate) fn object(target: &Target, form: Form, now: Timestamp, object: &Stored) -> Bytes {
    match form {
        Form::Object if is_in_version(target, object) => object.text().json().clone(),
        Form::Object => convert(target, object).to_string().into(),
        Form::Metadata => {
            let mut json = Vec::new();
            append_partial(object, &mut json);
            json.into()
        }
        Form::Table(include) => table(target, include, now, object).to_string().into(),
    }
}

/// One object as a table.
pub(crate) fn table(target: &Target, include: Include, now: Timestamp, object: &Stored) -> Value {
    let version = at(object, "/metadata/resourceVersion").cloned().unwrap_or_default();
    table::table(target, include, now, &[object.object()], json!({ "resourceVersion": version }))
}

/// A list of objects, as JSON: put together from the texts of its items, in the order in which every object is written.
pub(crate) fn list(target: &Target, form: Form, now: Timestamp, objects: &[Arc<Stored>], mut metadata: Value) -> Bytes {
    let mut json = Vec::new();
    match form {
        Form::Object => {
            if target.resource.custom && metadata.get("continue").is_none() {
                metadata["continue"] = json!("");
            }
            json.reserve(objects.iter().map(|object| object.text().json().len() + 1).sum());
            let items =
                |json: &mut Vec<u8>| append_all(objects, json, |object, json| append_item(target, object, json));
            append_list(&mut json, &target.api_version(), items, &target.resource.list_kind, &metadata);
        }
        Form::Metadata => {
            // Unlike every other list, an empty one of metadata is null.
            let items = |json: &mut Vec<u8>| match objects {
                [] => json.extend_from_slice(b"null"),
                objects => append_all(objects, json, |object, json| {
                    // Lists are asked for again: what is written for one serves the next.
                    object.text();
                    append_partial(object, json);
                }),
            };
            append_list(&mut json, META_VERSION, items, "PartialObjectMetadataList", &metadata);
        }
        Form::Table(include) => {
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

/// The items of a typed list do not repeat their type; those of custom resources do.
fn append_item(target: &Target, object: &Stored, json: &mut Vec<u8>) {
    let converted = (!is_in_version(target, object)).then(|| Text::write(&convert(target, object)));
    let text = converted.as_ref().unwrap_or_else(|| object.text());
    if target.resource.custom {
        json.extend_from_slice(text.json());
    } else {
        text.append_untyped(json);
    }
}

/// The metadata of an object, as an object.
fn append_partial(object: &Stored, json: &mut Vec<u8>) {
    json.extend_from_slice(b"{\"apiVersion\":");
    append(json, META_VERSION);
    json.extend_from_slice(b",\"kind\":\"PartialObjectMetadata\",\"metadata\":");
    match metadata_of(object) {
        // For its metadata alone an object is not written: of many a one, such as what a dry run shows, nobody sees more.
        Some(Cow::Borrowed(metadata)) => match object.written() {
            Some(text) => json.extend_from_slice(text.metadata()),
            None => append(json, metadata),
        },
        Some(Cow::Owned(shown)) => append(json, &shown),
        None => json.extend_from_slice(b"{}"),
    }
    json.push(b'}');
}
