//! What the server says about itself: groups, versions and resources, in the classic and in the aggregated form.

use serde_json::{Map, Value, json};

use crate::pointer::api_version;
use crate::registry::{Registry, Resource, Target};
use crate::response::Response;

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

fn verbs(resource: &Resource) -> Vec<&'static str> {
    // A real server refuses to delete all namespaces at once.
    VERBS.into_iter().filter(|verb| !(resource.is_namespace() && *verb == "deletecollection")).collect()
}

/// The version of the server.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

/// `/api` in the classic form.
pub(crate) fn core() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
    })
}

/// `/apis` in the classic form.
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups = registry.groups();
    let groups: Vec<Value> = groups
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_value(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
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
    let mut resources = Vec::new();
    for Target { resource, version } in registry.in_version(group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs(&resource),
        });
        put_names(&mut entry, &resource);
        resources.push(entry);
        if version.status {
            resources.push(json!({
                "name": format!("{}/status", resource.plural), "singularName": "", "namespaced": resource.namespaced,
                "kind": resource.kind, "verbs": STATUS_VERBS,
            }));
        }
    }
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": api_version(group, version), "resources": resources,
        })
    })
}

fn put_names(entry: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

/// `/api` or `/apis` in the aggregated form.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let mut items = Vec::new();
    for (group, versions) in registry.groups().into_iter().filter(|(group, _)| group.is_empty() == core) {
        let versions: Vec<Value> = versions
            .into_iter()
            .map(|version| {
                let resources: Vec<Value> =
                    registry.in_version(group, version).map(|target| aggregated_resource(&target)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        let mut metadata = Map::from_iter([("creationTimestamp".to_owned(), Value::Null)]);
        if !group.is_empty() {
            metadata.insert("name".to_owned(), json!(group));
        }
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(target: &Target) -> Value {
    let Target { resource, version } = target;
    let response_kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
    let mut entry = json!({
        "resource": resource.plural, "responseKind": response_kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": verbs(resource),
    });
    put_names(&mut entry, resource);
    if version.status {
        entry["subresources"] =
            json!([{"subresource": "status", "responseKind": response_kind, "verbs": STATUS_VERBS}]);
    }
    entry
}

/// The aggregated form with its content type and entity tag; 304 when the client has it already.
pub(crate) fn tagged(document: &Value, if_none_match: &str) -> Response {
    let body = document.to_string();
    let tag = format!("\"{:016X}\"", fingerprint(body.as_bytes()));
    let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let unchanged = if_none_match == tag;
    let headers = vec![
        ("content-type", media.to_owned()),
        ("etag", tag),
        ("vary", "Accept".to_owned()),
        ("cache-control", "public".to_owned()),
    ];
    if unchanged {
        return Response::Full { status: 304, headers, body: bytes::Bytes::new() };
    }
    Response::Full { status: 200, headers, body: body.into() }
}

/// FNV-1a: enough to tell one discovery document from another.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
