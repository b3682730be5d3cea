//! The objects of a new server: its Service, default roles, and addresses.

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, Request};

use crate::harness::*;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn names(machine: &mut Machine, target: &str) -> Vec<String> {
    let list = machine.get(target).body;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// A request of a user without any own permission.
fn as_user(machine: &Machine, user: &str, method: Method, target: &str) -> Request {
    let mut request = machine.request(method, target, "application/json", &Value::Null);
    request.headers.impersonation.user = Some(user.to_owned());
    request
}

#[test]
fn a_new_server_has_its_service_with_the_first_address() {
    let mut machine = Machine::new();
    let own = machine.get(&format!("{SERVICES}/kubernetes")).body;
    assert_eq!(own["spec"]["clusterIP"], "10.96.0.1");
    assert_eq!(machine.get("/api/v1/namespaces/default/endpoints/kubernetes").status, 200);
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(names(&mut machine, slices), ["kubernetes"]);
    assert_eq!(names(&mut machine, "/apis/networking.k8s.io/v1/servicecidrs"), ["kubernetes"]);
    let classes = names(&mut machine, "/apis/scheduling.k8s.io/v1/priorityclasses");
    assert_eq!(classes, ["system-cluster-critical", "system-node-critical"]);
}

#[test]
fn a_service_never_gets_a_taken_address_or_node_port() {
    let mut machine = Machine::new();
    let refused =
        machine.post(SERVICES, &service("first", &json!({"clusterIP": "10.96.0.1", "ports": [{"port": 80}]})));
    assert_eq!(refused.failure().0, 422, "{}", refused.body);
    let probe = machine.post(SERVICES, &service("probe", &json!({"type": "NodePort", "ports": [{"port": 80}]})));
    let (address, port) =
        (probe.body["spec"]["clusterIP"].as_str().expect("an address"), &probe.body["spec"]["ports"][0]["nodePort"]);
    let [.., third, fourth] = address.parse::<std::net::Ipv4Addr>().expect("an address").octets();
    let next = format!("10.96.{third}.{}", fourth + 1);
    let next_port = port.as_u64().expect("a port") + 1;
    let chosen = json!({"type": "NodePort", "clusterIP": next, "ports": [{"port": 80, "nodePort": next_port}]});
    assert_eq!(machine.post(SERVICES, &service("chosen", &chosen)).status, 201);
    let given = machine.post(SERVICES, &service("given", &json!({"type": "NodePort", "ports": [{"port": 80}]})));
    assert_eq!(given.status, 201, "{}", given.body);
    assert_ne!(given.body["spec"]["clusterIP"], json!(next));
    assert_ne!(given.body["spec"]["ports"][0]["nodePort"], json!(next_port));
}

#[test]
fn default_roles_give_permissions() {
    let mut machine = Machine::new();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "viewers"},
        "subjects": [{"kind": "User", "name": "viewer"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    assert_eq!(machine.post(bindings, &binding).status, 201);
    let mut status = |method: Method, target: &str| {
        let request = as_user(&machine, "viewer", method, target);
        machine.send(&request).status
    };
    assert_eq!(status(Method::GET, CONFIG_MAPS), 200);
    assert_eq!(status(Method::GET, "/api/v1/namespaces/default/secrets"), 403);
    assert_eq!(status(Method::GET, "/api/v1/namespaces/kube-system/configmaps"), 403);
    assert_eq!(status(Method::DELETE, &format!("{CONFIG_MAPS}/kube-root-ca.crt")), 403);
    assert_eq!(status(Method::GET, "/apis"), 200);
}

#[test]
fn a_labelled_role_is_aggregated_to_the_default_ones() {
    let mut machine = Machine::new();
    let rule = json!({"apiGroups": ["example.io"], "resources": ["gadgets"], "verbs": ["get"]});
    let part = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "gadget-viewer", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule],
    });
    let has_rule = |machine: &mut Machine, role: &str| {
        let role = machine.get(&format!("{ROLES}/{role}")).body;
        role["rules"].as_array().is_some_and(|rules| rules.contains(&rule))
    };
    assert_eq!(machine.post(ROLES, &part).status, 201);
    machine.advance(1_000);
    for role in ["view", "edit", "admin"] {
        assert!(has_rule(&mut machine, role), "{role}");
    }
    machine.delete(&format!("{ROLES}/gadget-viewer"));
    machine.advance(1_000);
    for role in ["view", "edit", "admin"] {
        assert!(!has_rule(&mut machine, role), "{role}");
    }
}

#[test]
fn a_server_without_controllers_has_only_its_own_objects() {
    let mut machine = Machine::new();
    assert!(names(&mut machine, "/api/v1/namespaces/kube-system/serviceaccounts").len() > 30);
    machine.server = ApiServer::new(7, machine.now).without_controllers();
    assert!(machine.get(&format!("{ROLES}/view")).body["rules"].is_null());
    let own: Vec<String> = names(&mut machine, "/api/v1/namespaces/kube-system/serviceaccounts");
    assert!(!own.contains(&"job-controller".to_owned()), "{own:?}");
}
