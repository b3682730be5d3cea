//! Who may do what, once there is an administrator.

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Credentials, Request};

use crate::harness::*;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

fn guarded() -> Machine {
    let mut machine = Machine::new();
    machine.server = machine.server.clone().with_administrator("the-token");
    machine
}

fn list(machine: &Machine, authorization: &str) -> Request {
    let mut request = machine.request(Method::GET, CONFIG_MAPS, "", &Value::Null);
    request.headers.authorization = Credentials(authorization.to_owned());
    request
}

fn as_administrator(machine: &mut Machine, target: &str, body: &Value) -> u16 {
    let mut request = machine.request(Method::POST, target, "application/json", body);
    request.headers.authorization = Credentials("Bearer the-token".to_owned());
    machine.send(&request).status
}

#[test]
fn the_administrator_may_everything_and_a_stranger_nothing() {
    let mut machine = guarded();
    let request = list(&machine, "Bearer the-token");
    assert_eq!(machine.send(&request).status, 200);
    let request = list(&machine, "Bearer another");
    assert_eq!(machine.send(&request).failure(), (401, "Unauthorized", "Unauthorized"));
    let request = list(&machine, "");
    let message = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(machine.send(&request).failure(), (403, "Forbidden", message));
}

#[test]
fn a_role_gives_what_its_binding_says_to_whom_it_says() {
    let mut machine = guarded();
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
    ]});
    let binding = json!({
        "metadata": {"name": "reader"}, "subjects": [{"kind": "User", "name": "someone"}],
        "roleRef": {"kind": "Role", "name": "reader"},
    });
    let mut request = list(&machine, "Bearer the-token");
    request.headers.impersonation.user = Some("someone".to_owned());
    assert_eq!(machine.send(&request).status, 403);
    assert_eq!(as_administrator(&mut machine, &format!("{RBAC}/roles"), &role), 201);
    assert_eq!(as_administrator(&mut machine, &format!("{RBAC}/rolebindings"), &binding), 201);
    assert_eq!(machine.send(&request).status, 200);
    request.headers.impersonation.user = Some("someone-else".to_owned());
    assert_eq!(machine.send(&request).status, 403);
}

#[test]
fn credentials_are_in_no_debug_form() {
    let machine = guarded();
    let shown = format!("{:?} {:?}", machine.server, list(&machine, "Bearer the-token"));
    assert!(!shown.contains("the-token"), "{shown}");
}
