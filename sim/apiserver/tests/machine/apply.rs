//! Server-side apply over the API.

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn applying_creates_then_writes_nothing_then_updates() {
    let mut machine = Machine::new();
    let target = format!("{DEPLOYMENTS}/web");
    let created = machine.apply(&target, &deployment("web"));
    assert_eq!(created.status, 201);
    assert_eq!(machine.journal(), ["Apply deployments/web"]);
    machine.advance(60_000);
    let again = machine.apply(&target, &deployment("web"));
    assert_eq!((again.status, &again.body), (200, &created.body));
    assert_eq!(machine.journal(), Vec::<String>::new());
    let mut changed = deployment("web");
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    let updated = machine.apply(&target, &changed);
    assert_eq!((updated.status, &updated.body["metadata"]["generation"]), (200, &json!(2)));
    assert_ne!(updated.resource_version(), created.resource_version());
    assert_eq!(machine.journal(), ["Apply deployments/web"]);
}

#[test]
fn apply_removes_fields_no_longer_declared_and_keeps_those_of_other_managers() {
    let mut machine = Machine::new();
    let target = format!("{CONFIG_MAPS}/a");
    machine.apply(&target, &config_map("a", &json!({"mine": "1", "old": "1"})));
    machine.patch(&target, MERGE, &json!({"data": {"theirs": "1"}}));
    let response = machine.apply(&target, &config_map("a", &json!({"mine": "1"})));
    assert_eq!(response.body["data"], json!({"mine": "1", "theirs": "1"}));
}

#[test]
fn conflicts_name_the_manager_and_the_field_and_force_wins() {
    let mut machine = Machine::new();
    let target = format!("{CONFIG_MAPS}/a");
    machine.apply(&target, &config_map("a", &json!({"k": "1"})));
    machine.patch(&format!("{target}?fieldManager=editor"), MERGE, &json!({"data": {"k": "2"}}));
    machine.server.take_journal();
    let refused = machine.apply(&target, &config_map("a", &json!({"k": "1"})));
    let message = "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.k";
    assert_eq!(refused.failure(), (409, "Conflict", message));
    let cause =
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"editor\" using v1", "field": ".data.k"}]);
    assert_eq!(refused.body["details"]["causes"], cause);
    assert_eq!(machine.journal(), Vec::<String>::new());
    let forced =
        machine.patch(&format!("{target}?fieldManager=tester&force=true"), APPLY, &config_map("a", &json!({"k": "1"})));
    assert_eq!(forced.body["data"]["k"], "1");
    let managers = forced.body["metadata"]["managedFields"].as_array().expect("managers").len();
    assert_eq!(managers, 1, "the editor owns nothing any more");
}

#[test]
fn yaml_is_accepted() {
    let mut machine = Machine::new();
    let mut request =
        machine.request(http::Method::PATCH, &format!("{CONFIG_MAPS}/a?fieldManager=tester"), APPLY, &json!({}));
    request.body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n".into();
    let response = machine.send(&request);
    assert_eq!((response.status, &response.body["data"]), (201, &json!({"k": "v"})));
    request.body = "apiVersion: [".into();
    assert_eq!(machine.send(&request).failure().0, 400);
    request.body = "a: 1".into();
    assert!(machine.send(&request).failure().2.starts_with("invalid object type: /, Kind="));
}

#[test]
fn a_uid_is_a_precondition() {
    let mut machine = Machine::new();
    let target = format!("{CONFIG_MAPS}/a");
    let mut body = config_map("a", &json!({}));
    body["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    let absent = machine.apply(&target, &body);
    let message = "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object specified uid 00000000-0000-4000-8000-000000000000, and no existing object was found";
    assert_eq!(absent.failure(), (409, "Conflict", message));
    let created = machine.apply(&target, &config_map("a", &json!({})));
    assert_eq!(machine.apply(&target, &body).failure().0, 422);
    body["metadata"]["uid"] = json!(created.uid());
    assert_eq!(machine.apply(&target, &body).status, 200);
}

#[test]
fn status_is_applied_only_through_its_subresource() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let target = format!("{GADGETS}/g");
    let mut body = gadget("g", &json!({"size": 1}));
    body["status"] = json!({"ready": true});
    let created = machine.apply(&target, &body);
    assert_eq!(created.body.get("status"), None);
    let status = machine.apply(&format!("{target}/status"), &body);
    assert_eq!((status.status, &status.body["status"]), (200, &json!({"ready": true})));
    assert_eq!(status.body["metadata"]["generation"], 1);
    let managers = status.body["metadata"]["managedFields"].as_array().expect("managers").clone();
    let status_fields: Vec<_> = managers
        .iter()
        .filter(|entry| entry["subresource"] == "status")
        .map(|entry| entry["fieldsV1"].clone())
        .collect();
    assert_eq!(status_fields, [json!({"f:status": {"f:ready": {}}})]);
    let write = machine.server.take_journal().pop().expect("a write");
    assert_eq!(write.subresource, "status");
    assert_eq!(
        machine.apply(&target, &body).resource_version(),
        status.resource_version(),
        "the main endpoint ignores the status"
    );
}

/// A ConfigMap as `kubectl apply` creates it.
fn client_side_applied(machine: &mut Machine, data: &Value) {
    let mut object = config_map("web", data);
    let configuration = format!("{object}\n");
    object["metadata"]["annotations"] = json!({ "kubectl.kubernetes.io/last-applied-configuration": configuration });
    let created = machine.post(&format!("{CONFIG_MAPS}?fieldManager=kubectl-client-side-apply"), &object);
    assert_eq!(created.status, 201, "{}", created.body);
}

#[test]
fn kubectl_takes_over_the_fields_of_client_side_apply() {
    let mut machine = Machine::new();
    client_side_applied(&mut machine, &json!({"a": "1", "b": "2"}));
    let target = format!("{CONFIG_MAPS}/web");
    let changed = config_map("web", &json!({"a": "9", "b": "2"}));
    let other = machine.patch(&format!("{target}?fieldManager=other"), APPLY, &changed);
    assert_eq!(
        other.failure(),
        (
            409,
            "Conflict",
            "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.a"
        )
    );
    let applied = machine.patch(&format!("{target}?fieldManager=kubectl"), APPLY, &changed);
    assert_eq!((applied.status, &applied.body["data"]["a"]), (200, &json!("9")));
    assert_eq!(
        applied.body["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"],
        json!(format!("{changed}\n"))
    );
    let managed = applied.body["metadata"]["managedFields"].as_array().expect("a list").clone();
    let owned: Vec<(&Value, &Value)> =
        managed.iter().map(|entry| (&entry["manager"], &entry["fieldsV1"]["f:data"])).collect();
    assert_eq!(
        owned,
        [
            (&json!("kubectl"), &json!({"f:a": {}, "f:b": {}})),
            (&json!("kubectl-client-side-apply"), &json!({".": {}, "f:b": {}})),
        ]
    );
}

#[test]
fn kubectl_conflicts_about_fields_that_changed_after_client_side_apply() {
    let mut machine = Machine::new();
    client_side_applied(&mut machine, &json!({"a": "1", "b": "2"}));
    let target = format!("{CONFIG_MAPS}/web");
    machine.patch(&format!("{target}?fieldManager=editor"), MERGE, &json!({"data": {"b": "3"}}));
    let changed = config_map("web", &json!({"a": "9", "b": "9"}));
    let refused = machine.patch(&format!("{target}?fieldManager=kubectl"), APPLY, &changed);
    assert_eq!(
        refused.failure(),
        (409, "Conflict", "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.b")
    );
}
