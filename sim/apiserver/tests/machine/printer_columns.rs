//! Columns of custom resources, and warnings and immutable fields of their definitions.

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::Response;

use crate::harness::*;

#[test]
fn columns_may_have_filters_indices_and_escapes() {
    let mut machine = Machine::new();
    let mut crd = gadget_crd();
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    crd["spec"]["versions"][1]["additionalPrinterColumns"] = json!([
        column("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
        column("First", ".spec.hosts[0]"),
        column("Hosts", ".spec.hosts"),
        column("Label", ".metadata.labels.app\\.kubernetes\\.io/name"),
    ]);
    assert_eq!(machine.post(CRDS, &crd).status, 201);
    machine.advance(1_000);
    let mut object = gadget("one", &json!({"hosts": ["a.example", "b.example"]}));
    object["metadata"]["labels"] = json!({"app.kubernetes.io/name": "shop"});
    assert_eq!(machine.post(GADGETS, &object).status, 201);
    let conditions = json!([{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]);
    machine.patch(&format!("{GADGETS}/one/status"), MERGE, &json!({"status": {"conditions": conditions}}));
    let mut request = machine.request(Method::GET, GADGETS, "", &Value::Null);
    request.headers.accept = "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned();
    let cells = machine.send(&request).body["rows"][0]["cells"].clone();
    assert_eq!(cells, json!(["one", "True", "a.example", "[\"a.example\",\"b.example\"]", "shop"]));
}

#[test]
fn the_scope_of_an_established_definition_does_not_change() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    for change in [json!({"scope": "Cluster"}), json!({"group": "other.io"}), json!({"names": {"kind": "Widget"}})] {
        let changed = machine.patch(&format!("{CRDS}/gadgets.example.io"), MERGE, &json!({ "spec": change }));
        assert_eq!(changed.status, 422, "{change}");
        assert!(changed.body["message"].as_str().is_some_and(|text| text.contains("field is immutable")), "{change}");
    }
}

#[test]
fn a_warning_that_no_header_can_hold_is_rejected_or_left_out() {
    let mut machine = Machine::new();
    let mut crd = gadget_crd();
    crd["spec"]["versions"][0]["deprecated"] = json!(true);
    crd["spec"]["versions"][0]["deprecationWarning"] = json!("first line\nsecond line");
    let rejected = machine.post(CRDS, &crd);
    assert_eq!(rejected.status, 422, "{}", rejected.body);
    crd["spec"]["versions"][0]["deprecationWarning"] = json!("one line");
    assert_eq!(machine.post(CRDS, &crd).status, 201);
    machine.advance(1_000);
    let path = GADGETS.replace("/v1/", "/v1beta1/");
    let request = machine.request(Method::GET, &path, "", &Value::Null);
    let response: Response = machine.server.handle(machine.now, &request, None);
    assert_eq!(response.header("warning"), Some("299 - \"one line\""));
}
