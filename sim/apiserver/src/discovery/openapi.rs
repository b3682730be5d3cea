//! OpenAPI documents: recorded ones of built-in groups, and minimal ones of CRDs that are enough for `kubectl`.
//!
//! The paths list the parameters of a patch, so that clients leave validation to the server.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use crate::discovery::groups::fingerprint;
use crate::http::request::Request;
use crate::http::response::Response;
use crate::object::fields::api_version;
use crate::registry::resource::Target;
use crate::registry::served::Registry;

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

include!(concat!(env!("OUT_DIR"), "/documents.rs"));

/// Returns the recorded document of a built-in group.
fn recorded(group: &str, version: &str) -> Option<String> {
    let name = root(group, version).replace('/', "-");
    let (_, packed) = DOCUMENTS.iter().find(|(known, _)| *known == name)?;
    let mut text = String::new();
    GzDecoder::new(*packed).read_to_string(&mut text).ok()?;
    Some(text)
}

/// `/openapi/v3/apis/GROUP/VERSION`
pub(crate) fn document(registry: &Registry, group: &str, version: &str) -> Option<String> {
    recorded(group, version).or_else(|| described(registry, group, version).map(|document| document.to_string()))
}

fn described(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for target in registry.in_version(group, version) {
        let namespace = if target.resource.namespaced { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{}/{namespace}{}/{{name}}", root(group, version), target.resource.plural);
        paths.insert(path, operations(&target));
        let name = format!("{}.{}", api_version(group, version).replace('/', "."), target.resource.kind);
        schemas.insert(name, schema(&target));
    }
    (!paths.is_empty()).then(|| {
        json!({
            "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.35.4"},
            "paths": paths, "components": {"schemas": schemas},
        })
    })
}

/// Media type by which `kubectl` asks for OpenAPI v2 in Protobuf, and its content type.
const MESSAGE_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const MESSAGE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`
pub(crate) fn version_2(request: &Request) -> Response {
    let info = json!({"title": TITLE, "version": VERSION});
    let document = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}).to_string();
    let response = respond(document.into(), &request.headers.if_none_match, true);
    let first = request.headers.accept.split(',').next().unwrap_or_default().trim();
    if first == MESSAGE_ASKED || first == MESSAGE {
        // The document is always the same, and so is its tag.
        return response.with_message(version_2_message().into(), MESSAGE);
    }
    response
}

const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.35.4";

/// The OpenAPI v2 document in Protobuf: version and title, no paths, no schemas.
fn version_2_message() -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).expect("every part is short");
        [&[number << 3 | 2, length], content].concat()
    };
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, &[]), field(9, &[])].concat()
}

/// Returns a document with its entity tag, or 304 if the client has it already.
pub(crate) fn respond(body: bytes::Bytes, if_none_match: &str, compressible: bool) -> Response {
    let tag = format!("\"{:016X}\"", fingerprint(&body));
    let unchanged = if_none_match == tag;
    let mut headers = vec![("etag", tag)];
    if compressible {
        headers.push(("vary", "Accept-Encoding".to_owned()));
    }
    headers.push(("vary", "Accept".to_owned()));
    if unchanged {
        return Response::Full { status: 304, headers, body: bytes::Bytes::new() };
    }
    headers.push(("content-type", "application/json".to_owned()));
    Response::Full { status: 200, headers, body }
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn kind_of(target: &Target) -> Value {
    json!({"group": target.resource.group, "version": target.version.name, "kind": target.resource.kind})
}

fn operations(target: &Target) -> Value {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter).to_vec();
    let operation = |action: &str| {
        json!({
            "operationId": format!("{action}{}", target.resource.kind),
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind_of(target),
        })
    };
    json!({"patch": operation("patch"), "put": operation("put")})
}

fn schema(target: &Target) -> Value {
    let mut schema = target.version.schema.clone().unwrap_or_else(|| json!({"type": "object"}));
    if let Some(map) = schema.as_object_mut() {
        map.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind_of(target)]));
    }
    schema
}
