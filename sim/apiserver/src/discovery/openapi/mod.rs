//! OpenAPI documents in versions 2 and 3: recorded ones of built-in groups, to which the kinds of CRDs are added.

mod custom_paths;
mod custom_schemas;
mod dialect;
mod message;

use std::io::Read;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use self::custom_paths::write_paths;
use self::custom_schemas::write_schemas;
use self::dialect::Dialect;
use crate::discovery::groups::{fingerprint, is_custom};
use crate::http::request::Request;
use crate::http::response::Response;
use crate::registry::served::Registry;

include!(concat!(env!("OUT_DIR"), "/documents.rs"));

/// Media types of OpenAPI v2 in Protobuf, both names of it.
const MESSAGES: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];
const JSON: &str = "application/json";
/// Built-in kind whose paths are those of a custom resource with all subresources.
const TEMPLATE: (&str, &str) = ("apps", "v1");

/// `/openapi/v3`
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = root(group, version);
            paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}));
        }
    }
    json!({ "paths": paths })
}

fn unpack(packed: &[u8]) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the recorded document of a built-in group.
fn recorded(group: &str, version: &str) -> Option<String> {
    let name = root(group, version).replace('/', "-");
    let (_, packed) = DOCUMENTS.iter().find(|(known, _)| *known == name)?;
    unpack(packed)
}

/// `/openapi/v3/apis/GROUP/VERSION`
pub(crate) fn document(registry: &Registry, group: &str, version: &str) -> Option<String> {
    recorded(group, version)
        .or_else(|| describe_custom_group(registry, group, version).map(|document| document.to_string()))
}

/// Returns the OpenAPI v3 document of a group of CRDs.
fn describe_custom_group(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut targets = registry.in_version(group, version).peekable();
    targets.peek()?;
    let template: Value = serde_json::from_str(&recorded(TEMPLATE.0, TEMPLATE.1)?).ok()?;
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for target in targets {
        write_paths(&target, Dialect::V3, &template["paths"], &mut paths);
        write_schemas(&target, Dialect::V3, &template["components"]["schemas"], &mut schemas);
    }
    copy_referenced(&json!(paths), &template["components"]["schemas"], &mut schemas);
    let own = json!(schemas);
    copy_referenced(&own, &template["components"]["schemas"], &mut schemas);
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

/// Copies the schemas that a value references, and those that they reference.
fn copy_referenced(value: &Value, known: &Value, schemas: &mut Map<String, Value>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|reference| reference.rsplit('/').next());
            if let Some((name, schema)) = name.and_then(|name| Some((name, known.get(name)?)))
                && !schemas.contains_key(name)
            {
                schemas.insert(name.to_owned(), schema.clone());
                copy_referenced(schema, known, schemas);
            }
            fields.values().for_each(|field| copy_referenced(field, known, schemas));
        }
        Value::Array(values) => values.iter().for_each(|value| copy_referenced(value, known, schemas)),
        _ => {}
    }
}

/// `/openapi/v2`
pub(crate) fn version_2(registry: &Registry, request: &Request) -> Response {
    let choices = request.headers.accept.split(',').map(|choice| choice.split(';').next().unwrap_or_default().trim());
    let mut accepted = choices.filter_map(|media| match media {
        "" | "*/*" | "application/*" | JSON => Some(JSON),
        other => MESSAGES.contains(&other).then_some(MESSAGES[0]),
    });
    let Some(choice) = accepted.next() else {
        return Response::Full { status: 406, headers: Vec::new(), body: Bytes::new() };
    };
    let custom = with_custom_kinds(registry);
    let json = custom.as_ref().map_or_else(built_in_json, |document| document.to_string().into());
    // Both media types have the same entity tag.
    let tag = entity_tag(&json);
    let body = match custom {
        _ if choice == JSON => json,
        Some(document) => message::encode_document(&document).into(),
        None => built_in_message(),
    };
    let headers = vec![("vary", "Accept-Encoding".to_owned()), ("vary", "Accept".to_owned())];
    respond_tagged(body, (tag, &request.headers.if_none_match), headers, choice)
}

/// Returns the document of built-in kinds.
fn built_in() -> Value {
    unpack(DOCUMENT_2).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns the document with the kinds of CRDs; `None` if there are none.
fn with_custom_kinds(registry: &Registry) -> Option<Value> {
    let groups = registry.groups();
    let mut custom = groups.into_iter().filter(|(group, _)| is_custom(group)).peekable();
    custom.peek()?;
    let mut document = built_in();
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for (group, versions) in custom {
        for target in versions.iter().flat_map(|version| registry.in_version(group, version)) {
            write_paths(&target, Dialect::V2, &document["paths"], &mut paths);
            write_schemas(&target, Dialect::V2, &document["definitions"], &mut definitions);
        }
    }
    for (part, added) in [("paths", paths), ("definitions", definitions)] {
        if let Some(entries) = document[part].as_object_mut() {
            entries.extend(added);
        }
    }
    Some(document)
}

fn built_in_json() -> Bytes {
    static WRITTEN: OnceLock<Bytes> = OnceLock::new();
    WRITTEN.get_or_init(|| built_in().to_string().into()).clone()
}

fn built_in_message() -> Bytes {
    static WRITTEN: OnceLock<Bytes> = OnceLock::new();
    WRITTEN.get_or_init(|| message::encode_document(&built_in()).into()).clone()
}

/// Returns a document of version 3 with its entity tag, or 304 if the client has it already.
pub(crate) fn respond(body: Bytes, if_none_match: &str) -> Response {
    let tag = entity_tag(&body);
    respond_tagged(body, (tag, if_none_match), vec![("vary", "Accept".to_owned())], JSON)
}

fn entity_tag(document: &Bytes) -> String {
    format!("\"{:016X}\"", fingerprint(document))
}

/// Returns a document, or 304 if the client has the one with this tag.
fn respond_tagged(
    body: Bytes,
    (tag, if_none_match): (String, &str),
    mut headers: Vec<(&'static str, String)>,
    media: &str,
) -> Response {
    let is_known = if_none_match == tag;
    headers.insert(0, ("etag", tag));
    if is_known {
        return Response::Full { status: 304, headers, body: Bytes::new() };
    }
    headers.push(("content-type", media.to_owned()));
    Response::Full { status: 200, headers, body }
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}
