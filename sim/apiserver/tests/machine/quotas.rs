//! Resource quotas: amounts, scopes and counts.

use serde_json::{Value, json};

use crate::harness::Machine;

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn machine_with_quota(spec: &Value) -> Machine {
    let mut machine = Machine::new();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": spec});
    assert_eq!(machine.post(QUOTAS, &quota).status, 201);
    machine.advance(1_000);
    machine
}

fn pod(name: &str, resources: &Value) -> Value {
    let container = json!({"name": "main", "image": "nginx:1", "resources": resources});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
}

fn used(machine: &mut Machine) -> Value {
    machine.advance(1_000);
    machine.get(&format!("{QUOTAS}/few")).body["status"]["used"].clone()
}

#[test]
fn quotas_of_storage_and_extended_resources_do_not_require_anything_of_pods() {
    let hard = json!({"requests.storage": "1Gi", "requests.example.com/gpu": "1", "requests.ephemeral-storage": "1Gi"});
    let mut machine = machine_with_quota(&json!({ "hard": hard }));
    assert_eq!(machine.post(PODS, &pod("plain", &json!({}))).status, 201);
    let gpu = json!({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}});
    assert_eq!(machine.post(PODS, &pod("gpu", &gpu)).status, 201);
    let refused = machine.post(PODS, &pod("another", &gpu));
    let message = "pods \"another\" is forbidden: exceeded quota: few, requested: requests.example.com/gpu=1, used: requests.example.com/gpu=1, limited: requests.example.com/gpu=1";
    assert_eq!(refused.failure(), (403, "Forbidden", message));
}

#[test]
fn quotas_count_the_storage_of_claims_by_class() {
    let hard = json!({"requests.storage": "3Gi", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"});
    let mut machine = machine_with_quota(&json!({ "hard": hard }));
    let claim = |name: &str, class: &str, size: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": {"requests": {"storage": size}},
            },
        })
    };
    assert_eq!(machine.post(CLAIMS, &claim("a", "gold", "1Gi")).status, 201);
    assert_eq!(machine.post(CLAIMS, &claim("b", "gold", "1Gi")).failure().0, 403);
    assert_eq!(machine.post(CLAIMS, &claim("b", "iron", "2Gi")).status, 201);
    let all = json!({"gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "requests.storage": "3Gi"});
    assert_eq!(used(&mut machine), all);
}

#[test]
fn a_quota_with_a_scope_counts_only_pods_in_it() {
    let mut machine = machine_with_quota(&json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]}));
    let requests = json!({"requests": {"cpu": "1"}});
    assert_eq!(machine.post(PODS, &pod("a", &requests)).status, 201);
    assert_eq!(machine.post(PODS, &pod("b", &json!({}))).status, 201);
    assert_eq!(machine.post(PODS, &pod("c", &requests)).status, 201);
    assert_eq!(machine.post(PODS, &pod("d", &json!({}))).failure().0, 403);
    assert_eq!(used(&mut machine), json!({"pods": "1"}));
}

#[test]
fn a_quota_may_select_a_priority_class() {
    let expression = json!({"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"]});
    let spec = json!({"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [expression]}});
    let mut machine = machine_with_quota(&spec);
    let mut critical = pod("critical", &json!({}));
    critical["spec"]["priorityClassName"] = json!("system-cluster-critical");
    assert_eq!(machine.post(PODS, &critical).failure().0, 403);
    assert_eq!(machine.post(PODS, &pod("plain", &json!({}))).status, 201);
}

#[test]
fn a_changed_service_may_exceed_a_quota() {
    let mut machine = machine_with_quota(&json!({"hard": {"services.nodeports": "1", "services": "5"}}));
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}});
    assert_eq!(machine.post(SERVICES, &service).status, 201);
    let target = format!("{SERVICES}/web");
    let changed = machine.patch(&target, crate::harness::MERGE, &json!({"spec": {"type": "NodePort"}}));
    let message = "services \"web\" is forbidden: exceeded quota: few, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1";
    assert_eq!(changed.failure(), (403, "Forbidden", message));
    assert_eq!(used(&mut machine), json!({"services": "2", "services.nodeports": "0"}));
}

#[test]
fn a_limit_range_keeps_explicit_amounts_of_resources_with_a_slash() {
    let mut machine = Machine::new();
    let limits = json!([{"type": "Container", "default": {"example.com/gpu": "1"}}]);
    let range = json!({"metadata": {"name": "some"}, "spec": {"limits": limits}});
    assert_eq!(machine.post("/api/v1/namespaces/default/limitranges", &range).status, 201);
    let created = machine.post(PODS, &pod("gpu", &json!({"limits": {"example.com/gpu": "4"}})));
    let resources = &created.body["spec"]["containers"][0]["resources"];
    assert_eq!(resources, &json!({"limits": {"example.com/gpu": "4"}, "requests": {"example.com/gpu": "4"}}));
}
