//! Lifecycle of namespaces, CRDs and objects with finalizers.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, ControllerDelays};

use crate::harness::*;

#[test]
fn the_initial_namespaces_exist() {
    let mut machine = Machine::new();
    let list = machine.get("/api/v1/namespaces").body;
    let names: Vec<&Value> =
        list["items"].as_array().expect("a list").iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
}

#[test]
fn a_new_namespace_gets_its_service_account_and_root_certificate() {
    let mut machine = Machine::new();
    let created = machine.post("/api/v1/namespaces", &namespace("shop"));
    assert_eq!(
        (&created.body["status"], &created.body["spec"]),
        (&json!({"phase": "Active"}), &json!({"finalizers": ["kubernetes"]}))
    );
    assert_eq!(created.body["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "shop"}));
    let account = "/api/v1/namespaces/shop/serviceaccounts/default";
    assert_eq!(machine.get(account).status, 404);
    machine.advance(50);
    assert_eq!(machine.get(account).status, 200);
    assert_eq!(machine.get("/api/v1/namespaces/shop/configmaps/kube-root-ca.crt").status, 200);
}

#[test]
fn a_pod_may_be_created_right_after_its_namespace() {
    let mut machine = Machine::new();
    machine.post("/api/v1/namespaces", &namespace("shop"));
    let pods = "/api/v1/namespaces/shop/pods";
    let pod = |name: &str, account: Option<&str>| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}], "serviceAccountName": account},
        })
    };
    let refused = machine.post(pods, &pod("a", Some("robot")));
    let message =
        "pods \"a\" is forbidden: error looking up service account shop/robot: serviceaccount \"robot\" not found";
    assert_eq!(refused.failure(), (403, "Forbidden", message));
    let created = machine.post(pods, &pod("a", None));
    assert_eq!((created.status, &created.body["spec"]["serviceAccountName"]), (201, &json!("default")));
    assert_eq!(machine.get("/api/v1/namespaces/shop/serviceaccounts/default").status, 200);
    assert_eq!(machine.get("/api/v1/namespaces/shop/configmaps/kube-root-ca.crt").status, 200);
}

#[test]
fn a_pod_does_not_wait_for_a_late_service_account() {
    let mut machine = Machine::new();
    let delays = ControllerDelays { namespace_defaults: SignedDuration::from_secs(5), ..ControllerDelays::default() };
    machine.server = ApiServer::with_delays(7, machine.now, delays);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    });
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(machine.post(pods, &pod).failure().0, 403);
    machine.advance(5_000);
    assert_eq!(machine.post(pods, &pod).status, 201);
}

#[test]
fn a_namespace_is_removed_after_its_content() {
    let mut machine = Machine::new();
    machine.post("/api/v1/namespaces", &namespace("shop"));
    machine.post("/api/v1/namespaces/shop/configmaps", &config_map("a", &json!({})));
    machine.advance(1_000);
    machine.server.take_journal();
    let deleted = machine.delete("/api/v1/namespaces/shop");
    assert_eq!((deleted.status, &deleted.body["status"]["phase"]), (200, &json!("Terminating")));
    let refused = machine.post("/api/v1/namespaces/shop/configmaps", &config_map("b", &json!({})));
    let message =
        "configmaps \"b\" is forbidden: unable to create new content in namespace shop because it is being terminated";
    assert_eq!(refused.failure(), (403, "Forbidden", message));
    let cause = json!([{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated", "field": "metadata.namespace"}]);
    assert_eq!(refused.body["details"]["causes"], cause);
    assert_eq!(machine.get("/api/v1/namespaces/shop/configmaps/a").status, 200);
    machine.advance(1_000);
    assert_eq!(machine.get("/api/v1/namespaces/shop").status, 404);
    assert_eq!(
        machine.journal(),
        [
            "Delete namespaces/shop",
            "-Delete configmaps/a",
            "-Delete configmaps/kube-root-ca.crt",
            "-Delete serviceaccounts/default",
            "-Delete namespaces/shop",
        ]
    );
}

#[test]
fn a_finalizer_blocks_the_removal_of_an_object_and_its_namespace() {
    let mut machine = Machine::new();
    machine.post("/api/v1/namespaces", &namespace("shop"));
    let mut body = config_map("a", &json!({}));
    body["metadata"]["finalizers"] = json!(["example.io/hold"]);
    machine.post("/api/v1/namespaces/shop/configmaps", &body);
    machine.delete("/api/v1/namespaces/shop");
    machine.advance(60_000);
    let held = machine.get("/api/v1/namespaces/shop/configmaps/a");
    assert!(held.body["metadata"]["deletionTimestamp"].is_string(), "{}", held.body);
    assert_eq!(machine.get("/api/v1/namespaces/shop").status, 200);
    let target = "/api/v1/namespaces/shop/configmaps/a";
    let more =
        machine.patch(target, MERGE, &json!({"metadata": {"finalizers": ["example.io/hold", "example.io/more"]}}));
    assert_eq!(more.failure().0, 422);
    assert_eq!(machine.patch(target, MERGE, &json!({"metadata": {"finalizers": null}})).status, 200);
    assert_eq!(machine.get(target).status, 404);
    machine.advance(1_000);
    assert_eq!(machine.get("/api/v1/namespaces/shop").status, 404);
}

#[test]
fn the_root_certificate_of_a_namespace_is_recreated() {
    let mut machine = Machine::new();
    let certificate = format!("{CONFIG_MAPS}/kube-root-ca.crt");
    assert_eq!(machine.delete(&certificate).status, 200);
    assert_eq!(machine.get(&certificate).status, 404);
    machine.advance(1_000);
    assert_eq!(machine.get(&certificate).status, 200);
}

#[test]
fn a_status_of_the_wrong_type_is_refused() {
    let mut machine = Machine::new();
    machine.post("/api/v1/namespaces", &namespace("shop"));
    let response = machine.patch("/api/v1/namespaces/shop/status", MERGE, &json!({"status": "odd"}));
    assert_eq!((response.failure().0, response.failure().1), (422, "Invalid"));
    assert_eq!(machine.delete("/api/v1/namespaces/shop").status, 200);
}

#[test]
fn the_default_namespace_cannot_be_deleted() {
    let mut machine = Machine::new();
    let response = machine.delete("/api/v1/namespaces/default");
    assert_eq!(
        response.failure(),
        (403, "Forbidden", "namespaces \"default\" is forbidden: this namespace may not be deleted")
    );
}

fn is_established(machine: &mut Machine) -> bool {
    let crd = machine.get(&format!("{CRDS}/gadgets.example.io")).body;
    let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

#[test]
fn an_established_crd_is_served_at_once() {
    let mut machine = Machine::new();
    machine.post(CRDS, &gadget_crd());
    assert_eq!((is_established(&mut machine), machine.get(GADGETS).status), (false, 404));
    machine.advance(100);
    assert_eq!((is_established(&mut machine), machine.get(GADGETS).status), (true, 200));
    let crd = machine.get(&format!("{CRDS}/gadgets.example.io")).body;
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
}

#[test]
fn a_crd_may_be_established_before_it_is_served() {
    let mut machine = Machine::new();
    machine.server = ApiServer::with_delays(7, machine.now, ControllerDelays::default().with_crd_gap());
    machine.post(CRDS, &gadget_crd());
    machine.advance(100);
    assert_eq!((is_established(&mut machine), machine.get(GADGETS).status), (true, 404));
    machine.advance(100);
    assert_eq!((is_established(&mut machine), machine.get(GADGETS).status), (true, 200));
}

#[test]
fn applying_a_crd_again_writes_nothing() {
    let mut machine = Machine::new();
    let target = format!("{CRDS}/gadgets.example.io");
    machine.apply(&target, &gadget_crd());
    machine.advance(1_000);
    let version = machine.get(&target).resource_version().to_owned();
    assert_eq!(machine.apply(&target, &gadget_crd()).resource_version(), version);
}

#[test]
fn deleting_a_crd_deletes_its_custom_resources() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let mut held = gadget("held", &json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.io/hold"]);
    machine.post(GADGETS, &held);
    machine.post(GADGETS, &gadget("free", &json!({"size": 1})));
    machine.server.take_journal();
    machine.delete(&format!("{CRDS}/gadgets.example.io"));
    let refused = machine.post(GADGETS, &gadget("late", &json!({"size": 1})));
    let message =
        "gadgets.example.io \"late\" is forbidden: create not allowed while custom resource definition is terminating";
    assert_eq!(refused.failure(), (403, "Forbidden", message));
    machine.advance(60_000);
    assert_eq!(
        machine.journal(),
        ["Delete customresourcedefinitions/gadgets.example.io", "-Delete gadgets/free", "Delete gadgets/held"]
    );
    machine.patch(&format!("{GADGETS}/held"), MERGE, &json!({"metadata": {"finalizers": []}}));
    machine.advance(1_000);
    assert_eq!(machine.journal(), ["-Patch gadgets/held", "-Delete customresourcedefinitions/gadgets.example.io"]);
    assert_eq!(machine.get(GADGETS).body, json!("404 page not found\n"));
}

#[test]
fn preconditions_protect_a_recreated_object() {
    let mut machine = Machine::new();
    let target = format!("{CONFIG_MAPS}/a");
    let first = machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    machine.delete(&target);
    let second = machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    assert_ne!(first.uid(), second.uid());
    let refused = machine.delete_with(&target, &json!({"preconditions": {"uid": first.uid()}}));
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition ({}) does not match the UID in record ({}). The object might have been deleted and then recreated",
        first.uid(),
        second.uid()
    );
    assert_eq!(refused.failure(), (409, "Conflict", message.as_str()));
    let refused =
        machine.delete_with(&target, &json!({"preconditions": {"resourceVersion": first.resource_version()}}));
    assert_eq!(refused.failure().0, 409);
    let deleted = machine.delete_with(&target, &json!({"preconditions": {"uid": second.uid()}}));
    assert_eq!((deleted.status, &deleted.body["status"]), (200, &json!("Success")));
    assert_eq!(deleted.body["details"], json!({"name": "a", "kind": "configmaps", "uid": second.uid()}));
    assert_eq!(machine.delete(&target).failure().0, 404);
}

#[test]
fn a_collection_is_deleted_by_selector() {
    let mut machine = Machine::new();
    for name in ["a", "b"] {
        let mut body = config_map(name, &json!({}));
        body["metadata"]["labels"] = json!({"name": name});
        machine.post(CONFIG_MAPS, &body);
    }
    machine.server.take_journal();
    assert_eq!(machine.delete(&format!("{CONFIG_MAPS}?labelSelector=name%3Da")).status, 200);
    assert_eq!(machine.journal(), ["-Delete configmaps/a"]);
}
