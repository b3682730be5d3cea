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

#[test]
fn openapi_v2_has_built_in_kinds_and_those_of_crds() {
    let mut machine = Machine::new();
    let mut request = machine.request(Method::GET, "/openapi/v2", "", &Value::Null);
    let first = machine.server.handle(machine.now, &request, None);
    let document = first.body_json().expect("a document");
    assert_eq!(document["swagger"], "2.0");
    assert!(document["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"].is_object());
    first.header("etag").expect("a tag").clone_into(&mut request.headers.if_none_match);
    assert_eq!(machine.server.handle(machine.now, &request, None).status(), Some(304));
    machine.create_gadget_crd();
    let changed = machine.server.handle(machine.now, &request, None);
    let document = changed.body_json().expect("a document");
    let kind = json!([{"group": "example.io", "kind": "Gadget", "version": "v1"}]);
    let gadget = &document["definitions"]["io.example.v1.Gadget"];
    assert_eq!(gadget["x-kubernetes-group-version-kind"], kind);
    assert_eq!(document["definitions"]["io.example.v1.GadgetList"]["required"], json!(["items"]));
    let path = "/apis/example.io/v1/namespaces/{namespace}/gadgets/{name}";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(patch["operationId"], "patchExampleIoV1NamespacedGadget");
    assert_eq!(patch["responses"]["200"]["schema"]["$ref"], "#/definitions/io.example.v1.Gadget");
    assert_eq!(document["paths"][path]["get"]["description"], "read the specified Gadget");
}

#[test]
fn openapi_v2_is_served_in_protobuf_and_in_no_other_media_type() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let mut request = machine.request(Method::GET, "/openapi/v2", "", &Value::Null);
    request.headers.accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf".to_owned();
    let response = machine.server.handle(machine.now, &request, None);
    let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!((response.status(), response.header("content-type")), (Some(200), Some(media)));
    let sindri_apiserver::Response::Full { body, .. } = response else { panic!("a complete response") };
    assert!(body.starts_with(b"\n\x032.0\x12"), "the version of the format comes first");
    let has = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("io.example.v1.Gadget") && has("io.k8s.api.core.v1.Pod"));
    request.headers.accept = "application/xml".to_owned();
    assert_eq!(machine.server.handle(machine.now, &request, None).status(), Some(406));
}

#[test]
fn openapi_v3_of_a_crd_has_its_operations_and_every_referenced_schema() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let document = machine.get("/openapi/v3/apis/example.io/v1").body;
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().expect("it ends");
        assert!(schemas.contains_key(name), "{name}");
    }
    let put = &document["paths"]["/apis/example.io/v1/namespaces/{namespace}/gadgets/{name}"]["put"];
    let body = &put["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(body, "#/components/schemas/io.example.v1.Gadget");
}
