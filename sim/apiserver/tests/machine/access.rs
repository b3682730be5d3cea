//! Authentication and authorization once there is an administrator.

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Credentials, Request};

use crate::harness::*;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

fn machine_with_administrator() -> Machine {
    let mut machine = Machine::new();
    machine.server = machine.server.clone().with_administrator("the-token");
    machine
}

fn list_request(machine: &Machine, authorization: &str) -> Request {
    let mut request = machine.request(Method::GET, CONFIG_MAPS, "", &Value::Null);
    request.headers.authorization = Credentials(authorization.to_owned());
    request
}

fn create_as_administrator(machine: &mut Machine, target: &str, body: &Value) -> u16 {
    let mut request = machine.request(Method::POST, target, "application/json", body);
    request.headers.authorization = Credentials("Bearer the-token".to_owned());
    machine.send(&request).status
}

#[test]
fn the_administrator_is_allowed_everything_and_an_anonymous_user_nothing() {
    let mut machine = machine_with_administrator();
    let request = list_request(&machine, "Bearer the-token");
    assert_eq!(machine.send(&request).status, 200);
    let request = list_request(&machine, "Bearer another");
    assert_eq!(machine.send(&request).failure(), (401, "Unauthorized", "Unauthorized"));
    let request = list_request(&machine, "");
    let message = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(machine.send(&request).failure(), (403, "Forbidden", message));
}

#[test]
fn a_role_applies_to_the_subjects_of_its_binding_only() {
    let mut machine = machine_with_administrator();
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
    ]});
    let binding = json!({
        "metadata": {"name": "reader"}, "subjects": [{"kind": "User", "name": "someone"}],
        "roleRef": {"kind": "Role", "name": "reader"},
    });
    let mut request = list_request(&machine, "Bearer the-token");
    request.headers.impersonation.user = Some("someone".to_owned());
    assert_eq!(machine.send(&request).status, 403);
    assert_eq!(create_as_administrator(&mut machine, &format!("{RBAC}/roles"), &role), 201);
    assert_eq!(create_as_administrator(&mut machine, &format!("{RBAC}/rolebindings"), &binding), 201);
    assert_eq!(machine.send(&request).status, 200);
    request.headers.impersonation.user = Some("someone-else".to_owned());
    assert_eq!(machine.send(&request).status, 403);
}

#[test]
fn debug_output_has_no_credentials() {
    let machine = machine_with_administrator();
    let debug = format!("{:?} {:?}", machine.server, list_request(&machine, "Bearer the-token"));
    assert!(!debug.contains("the-token"), "{debug}");
}

#[test]
fn responses_name_the_flow_schema_and_the_priority_level() {
    const SCHEMAS: &str = "flowschemas";
    const GROUP: &str = "flowcontrol.apiserver.k8s.io";
    let mut machine = machine_with_administrator();
    let expect = |machine: &mut Machine, user: &str, target: &str, schema: &str, level: &str| {
        let mut request = Request::new(Method::GET, target).expect("valid");
        match user {
            "administrator" => request.headers.authorization = Credentials("Bearer the-token".to_owned()),
            "anonymous" => {}
            name => {
                request.headers.certificate =
                    Some(sindri_apiserver::Subject { user: name.to_owned(), groups: vec!["developers".to_owned()] });
            }
        }
        let uid = |plural: &str, name: &str| {
            let object = machine.server.get(GROUP, plural, None, name).expect("a bootstrap object");
            object["metadata"]["uid"].as_str().expect("a UID").to_owned()
        };
        let expected = (uid(SCHEMAS, schema), uid("prioritylevelconfigurations", level));
        let response = machine.server.handle(machine.now, &request, None);
        let headers = match &response {
            sindri_apiserver::Response::Watch(id) => machine.server.watch_headers(*id),
            sindri_apiserver::Response::Full { headers, .. } => headers.clone(),
            sindri_apiserver::Response::Upgrade(_) | sindri_apiserver::Response::Cut => Vec::new(),
        };
        let header = |name: &str| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
        let found = (header("x-kubernetes-pf-flowschema-uid"), header("x-kubernetes-pf-prioritylevel-uid"));
        assert_eq!(found, (Some(expected.0), Some(expected.1)), "{user} {target}");
    };
    expect(&mut machine, "administrator", "/api/v1/nodes", "exempt", "exempt");
    expect(&mut machine, "administrator", "/api/v1/nodes?watch=true", "exempt", "exempt");
    expect(&mut machine, "anonymous", "/readyz", "probes", "exempt");
    expect(&mut machine, "anonymous", "/version", "global-default", "global-default");
    expect(&mut machine, "jane", "/api/v1/nodes", "global-default", "global-default");
    expect(&mut machine, "system:kube-scheduler", "/api/v1/nodes", "kube-scheduler", "workload-high");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
    expect(&mut machine, "system:kube-scheduler", leases, "system-leader-election", "leader-election");
    let account = "system:serviceaccount:kube-system:x";
    expect(&mut machine, account, "/api/v1/nodes", "kube-system-service-accounts", "workload-high");
}
