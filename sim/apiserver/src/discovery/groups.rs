//! Discovery: groups, versions and resources, unaggregated and aggregated.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::encoding::protobuf;
use crate::http::media::Notation;
use crate::http::response::Response;
use crate::object::fields::api_version;
use crate::registry::kinds;
use crate::registry::resource::{Resource, Target};
use crate::registry::served::Registry;

/// Returns the recorded unaggregated document of a path.
fn recorded(path: &str) -> Option<&'static Value> {
    kinds::recorded().get("classic")?.get(path)
}

/// `/version`
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "35", "emulationMajor": "1", "emulationMinor": "35", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "34", "gitVersion": kinds::recorded()["version"]["gitVersion"], "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "gc",
        "platform": "linux/amd64",
    })
}

/// `/`: every path.
pub(crate) fn paths(registry: &Registry) -> Value {
    let documents = kinds::recorded().get("classic").and_then(Value::as_object);
    let mut paths: Vec<String> = documents.into_iter().flatten().map(|(path, _)| path.clone()).collect();
    let others = [
        "/.well-known/openid-configuration",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
    for (group, versions) in custom_groups(registry) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    paths.sort();
    json!({ "paths": paths })
}

/// `/openid/v1/jwks`
pub(crate) fn keys() -> Value {
    json!({"keys": [{"use": "sig", "kty": "EC", "kid": "simulated", "crv": "P-256", "alg": "ES256", "x": "", "y": ""}]})
}

/// `/.well-known/openid-configuration`
pub(crate) fn issuer() -> Value {
    json!({
        "issuer": "https://kubernetes.default.svc.cluster.local",
        "jwks_uri": "https://127.0.0.1:6443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// `/api`, unaggregated.
pub(crate) fn core() -> Value {
    let mut document = recorded("/api").cloned().unwrap_or_default();
    document["serverAddressByClientCIDRs"][0]["serverAddress"] = json!("127.0.0.1:6443");
    document
}

/// `/apis`, unaggregated: the recorded groups, then those of CRDs.
pub(crate) fn groups(registry: &Registry) -> Value {
    let mut document = recorded("/apis").cloned().unwrap_or_default();
    if let Some(listed) = document.get_mut("groups").and_then(Value::as_array_mut) {
        listed.extend(custom_groups(registry).map(|(group, versions)| group_value(group, &versions)));
    }
    document
}

/// True if only CRDs have this group.
pub(crate) fn is_custom(group: &str) -> bool {
    !group.is_empty() && recorded(&format!("/apis/{group}")).is_none()
}

/// Returns the groups that only CRDs have.
fn custom_groups(registry: &Registry) -> impl Iterator<Item = (&str, Vec<&str>)> {
    registry
        .groups()
        .into_iter()
        .filter(|(group, _)| !group.is_empty() && recorded(&format!("/apis/{group}")).is_none())
}

/// `/apis/GROUP`
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = registry.groups();
    let mut value = group_value(name, groups.get(name)?);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Some(value)
}

fn group_value(group: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1` and `/apis/GROUP/VERSION`
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if let Some(document) = recorded(&path) {
        return Some(document.clone());
    }
    let mut resources = Vec::new();
    for Target { resource, version } in registry.in_version(group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": resource.verbs,
            "storageVersionHash": storage_hash(&resource),
        });
        put_names(&mut entry, &resource);
        resources.push(entry);
        for (name, verbs) in version.subresources.iter().rev() {
            let mut part = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
                "kind": resource.kind, "verbs": verbs,
            });
            if name == "scale" {
                part["group"] = json!("autoscaling");
                part["version"] = json!("v1");
                part["kind"] = json!("Scale");
            }
            resources.push(part);
        }
    }
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": api_version(group, version), "resources": resources,
        })
    })
}

/// Returns the `storageVersionHash` of a resource.
fn storage_hash(resource: &Resource) -> String {
    let stored = format!("{}/{}/{}", resource.group, resource.storage, resource.kind);
    STANDARD.encode(&Sha256::digest(stored.as_bytes())[..8])
}

fn put_names(entry: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

/// `/api` or `/apis`, aggregated: the recorded groups, then those of CRDs.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let mut document = kinds::recorded()[if core { "core" } else { "groups" }].clone();
    let Some(items) = document.get_mut("items").and_then(Value::as_array_mut).filter(|_| !core) else {
        return document;
    };
    for (group, versions) in custom_groups(registry) {
        let versions: Vec<Value> = versions
            .into_iter()
            .map(|version| {
                let resources: Vec<Value> =
                    registry.in_version(group, version).map(|target| aggregated_resource(&target)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        items.push(json!({"metadata": {"name": group}, "versions": versions}));
    }
    document
}

fn aggregated_resource(target: &Target) -> Value {
    let Target { resource, version } = target;
    let response_kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
    let mut entry = json!({
        "resource": resource.plural, "responseKind": response_kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs,
    });
    put_names(&mut entry, resource);
    let part = |(name, verbs): (&String, &Vec<String>)| {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        let kind = if name == "scale" { &scale } else { &response_kind };
        json!({"subresource": name, "responseKind": kind, "verbs": verbs})
    };
    if !version.subresources.is_empty() {
        entry["subresources"] = version.subresources.iter().rev().map(part).collect();
    }
    entry
}

/// Returns an aggregated document with its content type and entity tag, or 304 if the client has it already.
pub(crate) fn tagged(document: &Value, notation: Notation, if_none_match: &str) -> Response {
    let message = protobuf::encode(document).filter(|_| notation == Notation::Protobuf);
    let media = if message.is_some() { protobuf::MEDIA } else { "application/json" };
    let media = format!("{media};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let body = message.unwrap_or_else(|| document.to_string().into());
    let tag = format!("\"{:016X}\"", fingerprint(&body));
    let unchanged = if_none_match == tag;
    let headers = vec![
        ("content-type", media),
        ("etag", tag),
        ("vary", "Accept".to_owned()),
        ("cache-control", "public".to_owned()),
    ];
    if unchanged {
        let headers = headers.into_iter().filter(|(name, _)| *name != "content-type").collect();
        return Response::Full { status: 304, headers, body: bytes::Bytes::new() };
    }
    Response::Full { status: 200, headers, body }
}

/// FNV-1a hash, as the entity tag of a document.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
