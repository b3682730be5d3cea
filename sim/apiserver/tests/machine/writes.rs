//! Create, update and patch.

use serde_json::{Value, json};
use sindri_apiserver::Actor;

use crate::harness::*;

#[test]
fn a_created_object_gets_its_server_side_metadata() {
    let mut machine = Machine::new();
    let created = machine.post(CONFIG_MAPS, &config_map("a", &json!({"k": "v"})));
    let metadata = &created.body["metadata"];
    assert_eq!(created.status, 201);
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["creationTimestamp"], "2026-01-01T00:00:10Z");
    assert_eq!(metadata.get("generation"), None);
    let uid = created.uid();
    assert_eq!((uid.len(), uid.as_bytes()[14]), (36, b'4'), "a version 4 UUID");
    let entry = &metadata["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("tester"), &json!("Update")));
    assert_eq!(entry["fieldsV1"], json!({"f:data": {".": {}, "f:k": {}}}));
    let write = machine.server.take_journal().remove(0);
    assert_eq!(write.actor, Actor::Client { user_agent: "tester/1.0".to_owned(), field_manager: "tester".to_owned() });
    assert_eq!((write.before, write.uid.as_str()), (None, uid));
    assert_eq!(write.resource_version.to_string(), created.resource_version());
}

#[test]
fn generated_names_end_in_five_characters() {
    let mut machine = Machine::new();
    let body = json!({"metadata": {"generateName": "job-"}});
    let (one, two) = (machine.post(CONFIG_MAPS, &body), machine.post(CONFIG_MAPS, &body));
    let name = |response: &TestResponse| response.body["metadata"]["name"].as_str().expect("a name").to_owned();
    assert!(name(&one).starts_with("job-") && name(&one).len() == 9, "{}", name(&one));
    assert_ne!(name(&one), name(&two));
}

#[test]
fn a_stale_update_conflicts_and_an_unchanged_one_writes_nothing() {
    let mut machine = Machine::new();
    let target = format!("{CONFIG_MAPS}/a");
    let first = machine.post(CONFIG_MAPS, &config_map("a", &json!({"k": "1"}))).body;
    machine.server.take_journal();
    machine.advance(5_000);
    let same = machine.put(&target, &first);
    assert_eq!((same.status, &same.body), (200, &first));
    assert_eq!(machine.journal(), Vec::<String>::new());
    let mut second = first.clone();
    second["data"]["k"] = json!("2");
    let updated = machine.put(&target, &second);
    assert_eq!(updated.status, 200);
    assert_ne!(updated.resource_version(), first["metadata"]["resourceVersion"].as_str().expect("a resourceVersion"));
    assert_eq!(machine.journal(), ["Update configmaps/a"]);
    let stale = machine.put(&target, &second);
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again";
    assert_eq!(stale.failure(), (409, "Conflict", message));
    let missing = machine.put(&format!("{CONFIG_MAPS}/b"), &config_map("b", &json!({})));
    assert_eq!(missing.failure().0, 404);
}

#[test]
fn the_generation_changes_with_the_spec_only() {
    let mut machine = Machine::new();
    let target = format!("{DEPLOYMENTS}/web");
    let generation = |response: &TestResponse| response.body["metadata"]["generation"].clone();
    assert_eq!(generation(&machine.post(DEPLOYMENTS, &deployment("web"))), 1);
    assert_eq!(generation(&machine.patch(&target, MERGE, &json!({"metadata": {"labels": {"x": "y"}}}))), 1);
    assert_eq!(generation(&machine.patch(&target, MERGE, &json!({"spec": {"replicas": 3}}))), 2);
    let status =
        machine.patch(&format!("{target}/status"), MERGE, &json!({"status": {"replicas": 3}, "spec": {"replicas": 9}}));
    assert_eq!(generation(&status), 2);
    assert_eq!((&status.body["status"]["replicas"], &status.body["spec"]["replicas"]), (&json!(3), &json!(3)));
    let reset = machine.patch(&target, MERGE, &json!({"status": {"replicas": 7}}));
    assert_eq!(reset.body["status"]["replicas"], 3);
}

#[test]
fn the_selector_of_a_deployment_is_immutable() {
    let mut machine = Machine::new();
    machine.post(DEPLOYMENTS, &deployment("web"));
    let change = json!({"spec": {
        "selector": {"matchLabels": {"app": "other"}},
        "template": {"metadata": {"labels": {"app": "other"}}},
    }});
    let response = machine.patch(&format!("{DEPLOYMENTS}/web"), MERGE, &change);
    assert_eq!(response.status, 422);
    assert_eq!(response.body["details"]["causes"][0]["field"], "spec.selector");
    assert!(response.failure().2.ends_with("field is immutable"), "{}", response.body);
}

#[test]
fn strategic_patches_merge_lists_and_merge_patches_replace_them() {
    let mut machine = Machine::new();
    let target = format!("{DEPLOYMENTS}/web");
    machine.post(DEPLOYMENTS, &deployment("web"));
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}}});
    let names = |response: &TestResponse| -> Vec<Value> {
        let containers = response.body["spec"]["template"]["spec"]["containers"].as_array().expect("a list");
        containers.iter().map(|container| container["name"].clone()).collect()
    };
    assert_eq!(names(&machine.patch(&target, STRATEGIC, &sidecar)), ["side", "main"]);
    assert_eq!(names(&machine.patch(&target, MERGE, &sidecar)), ["side"]);
}

#[test]
fn dry_runs_return_the_result_and_store_nothing() {
    let mut machine = Machine::new();
    let before = machine.server.revision();
    let created = machine.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a", &json!({})));
    assert_eq!(created.status, 201);
    let applied = machine.apply(&format!("{CONFIG_MAPS}/a"), &config_map("a", &json!({"k": "1"})));
    machine.server.take_journal();
    let again = machine.patch(
        &format!("{CONFIG_MAPS}/a?fieldManager=tester&dryRun=All"),
        APPLY,
        &config_map("a", &json!({"k": "2"})),
    );
    assert_eq!((again.status, &again.body["data"]["k"]), (200, &json!("2")));
    assert_eq!(machine.delete(&format!("{CONFIG_MAPS}/a?dryRun=All")).status, 200);
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}/a")).body, applied.body);
    assert_eq!((machine.server.revision(), machine.journal()), (before + 1, vec![]));
}

#[test]
fn string_data_of_secrets_is_encoded() {
    let mut machine = Machine::new();
    let secrets = "/api/v1/namespaces/default/secrets";
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let created = machine.apply(&format!("{secrets}/s"), &body);
    assert_eq!((&created.body["data"], created.body.get("stringData")), (&json!({"k": "dg=="}), None));
    assert_eq!(created.body["type"], "Opaque");
    machine.advance(1_000);
    assert_eq!(machine.apply(&format!("{secrets}/s"), &body).resource_version(), created.resource_version());
}

#[test]
fn services_keep_their_cluster_ip() {
    let mut machine = Machine::new();
    let services = "/api/v1/namespaces/default/services";
    let body =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let created = machine.post(services, &body);
    let address = created.body["spec"]["clusterIP"].clone();
    let replaced = machine.put(&format!("{services}/s"), &body);
    assert_eq!(
        (replaced.body["spec"]["clusterIP"].clone(), replaced.resource_version()),
        (address, created.resource_version())
    );
    assert_eq!(replaced.body["spec"]["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
}

#[test]
fn custom_resources_are_served_in_each_api_version() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    machine.post(GADGETS, &gadget("g", &json!({"size": 1})));
    let older = machine.get("/apis/example.io/v1beta1/namespaces/default/gadgets/g");
    assert_eq!(older.body["apiVersion"], "example.io/v1beta1");
    let mut applied = gadget("g", &json!({"size": 2}));
    applied["apiVersion"] = json!("example.io/v1beta1");
    let target = "/apis/example.io/v1beta1/namespaces/default/gadgets/g?fieldManager=tester&force=true";
    assert_eq!(machine.patch(target, APPLY, &applied).status, 200);
    let (key, stored) = machine.server.objects().find(|(key, _)| key.kind == "Gadget").expect("stored");
    assert_eq!((key.version.as_str(), &stored["apiVersion"]), ("v1", &json!("example.io/v1")));
    assert_eq!((&stored["spec"]["size"], &stored["metadata"]["generation"]), (&json!(2), &json!(2)));
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let run = || {
        let mut machine = Machine::new();
        machine.create_gadget_crd();
        let mut bytes = Vec::new();
        for name in ["a", "b"] {
            bytes.push(machine.post(GADGETS, &gadget(name, &json!({"size": 1}))).body.to_string());
            bytes.push(machine.post(CONFIG_MAPS, &json!({"metadata": {"generateName": "x-"}})).body.to_string());
        }
        machine.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.io");
        machine.advance(10_000);
        bytes.push(format!("{:?}", machine.server.take_journal()));
        bytes
    };
    assert_eq!(run(), run());
}
