//! A server without requests comes to rest.

use serde_json::{Value, json};

use crate::harness::*;

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Objects of the kinds with controllers: the path of their collection, and a body.
fn objects() -> Vec<(&'static str, Value)> {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let aggregated = |label: &str, rules: &Value| {
        let selectors = json!([{"matchLabels": {label: "true"}}]);
        json!({"aggregationRule": {"clusterRoleSelectors": selectors}, "rules": rules})
    };
    let named = |name: &str, mut object: Value, labels: Value| {
        object["metadata"] = json!({"name": name, "labels": labels});
        object
    };
    let selector = json!({"matchLabels": {"app": "x"}});
    let template = json!({
        "metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    });
    let workload = |name: &str| named(name, json!({"spec": {"selector": selector, "template": template}}), json!({}));
    let once = json!({
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx:1"}]},
    });
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let limits = json!([{"type": "Container", "default": {"cpu": "1", "example.com/gpu": "1"}}]);
    let schedule = json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": once}}});
    let mut stateful = workload("stateful");
    stateful["spec"]["serviceName"] = json!("web");
    vec![
        (CLUSTER_ROLES, named("part", json!({"rules": rules}), json!({"in": "true"}))),
        (CLUSTER_ROLES, named("whole", aggregated("in", &json!([])), json!({}))),
        (CLUSTER_ROLES, named("alone", aggregated("nothing", &rules), json!({}))),
        (CLUSTER_ROLES, named("itself", aggregated("self", &rules), json!({"self": "true"}))),
        (DEPLOYMENTS, deployment("web")),
        ("/apis/apps/v1/namespaces/default/replicasets", workload("set")),
        ("/apis/apps/v1/namespaces/default/statefulsets", stateful),
        ("/apis/apps/v1/namespaces/default/daemonsets", workload("daemon")),
        ("/apis/batch/v1/namespaces/default/jobs", named("once", json!({"spec": {"template": once}}), json!({}))),
        ("/apis/batch/v1/namespaces/default/cronjobs", named("yearly", json!({ "spec": schedule }), json!({}))),
        (
            "/api/v1/namespaces/default/services",
            named("web", json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}), json!({})),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            named("web", json!({"spec": {"maxUnavailable": 1, "selector": selector}}), json!({})),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            named("few", json!({"spec": {"hard": {"pods": "50"}}}), json!({})),
        ),
        ("/api/v1/namespaces/default/limitranges", named("some", json!({"spec": {"limits": limits}}), json!({}))),
        ("/api/v1/namespaces/default/persistentvolumeclaims", named("data", json!({ "spec": claim }), json!({}))),
        ("/api/v1/namespaces", namespace("shop")),
        (CRDS, gadget_crd()),
    ]
}

#[test]
fn an_idle_server_writes_nothing() {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_workloads().with_kubelet(now, &["node-1"]);
    for (collection, object) in objects() {
        let created = machine.post(collection, &object);
        assert_eq!(created.status, 201, "{}", created.body);
    }
    machine.advance(120_000);
    let revision = machine.server.revision();
    machine.server.take_journal();
    machine.advance(60_000);
    assert_eq!(machine.server.revision(), revision, "{:?}", machine.journal());
    let alone = machine.get(&format!("{CLUSTER_ROLES}/alone")).body;
    assert_eq!(alone["rules"][0]["resources"], json!(["pods"]), "the rules of another manager stay");
}
