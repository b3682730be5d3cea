//! Discovery, health, version and OpenAPI endpoints.

use http::Method;
use serde_json::{Value, json};

use crate::harness::*;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[test]
fn classic_discovery_lists_groups_and_resources() {
    let mut machine = Machine::new();
    assert_eq!(machine.get("/api").body["versions"], json!(["v1"]));
    let groups = machine.get("/apis").body;
    let names: Vec<&Value> = groups["groups"].as_array().expect("a list").iter().map(|group| &group["name"]).collect();
    assert_eq!((names[0], names[1]), (&json!("apiregistration.k8s.io"), &json!("apps")));
    let resources = machine.get("/apis/apps/v1").body;
    assert_eq!(resources["groupVersion"], "apps/v1");
    let names: Vec<&Value> =
        resources["resources"].as_array().expect("a list").iter().map(|resource| &resource["name"]).collect();
    assert!(names.contains(&&json!("deployments")) && names.contains(&&json!("deployments/status")), "{names:?}");
    assert_eq!(machine.get("/apis/apps").body["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(machine.get("/apis/apps/v2").status, 404);
}

#[test]
fn aggregated_discovery_has_an_etag() {
    let mut machine = Machine::new();
    let mut request = machine.request(Method::GET, "/apis", "", &Value::Null);
    request.headers.accept = format!("{AGGREGATED},application/json");
    let first = machine.server.handle(machine.now, &request, None);
    assert_eq!(first.header("content-type"), Some(AGGREGATED));
    let body = first.body_json().expect("a document");
    assert_eq!(body["kind"], "APIGroupDiscoveryList");
    assert_eq!(body["items"][1]["versions"][0]["resources"][0]["scope"], "Namespaced");
    first.header("etag").expect("an etag").clone_into(&mut request.headers.if_none_match);
    assert_eq!(machine.server.handle(machine.now, &request, None).status(), Some(304));
    machine.create_gadget_crd();
    let changed = machine.server.handle(machine.now, &request, None);
    assert_eq!(changed.status(), Some(200));
    assert!(changed.body_json().expect("a document").to_string().contains("gadgets"));
}

#[test]
fn custom_groups_prefer_stable_versions() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let group = machine.get("/apis/example.io").body;
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(group["versions"][1]["version"], "v1beta1");
}

#[test]
fn health_version_and_openapi_are_served() {
    let mut machine = Machine::new();
    for target in ["/healthz", "/readyz", "/livez"] {
        assert_eq!(machine.get(target).body, json!("ok"), "{target}");
    }
    assert_eq!(machine.get("/version").body["major"], "1");
    let paths = machine.get("/openapi/v3").body["paths"].clone();
    assert_eq!(paths["apis/apps/v1"]["serverRelativeURL"], "/openapi/v3/apis/apps/v1");
    let document = machine.get("/openapi/v3/apis/apps/v1").body.to_string();
    assert!(document.contains("fieldValidation"), "{document}");
}
