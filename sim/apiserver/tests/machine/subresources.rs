//! Scales, evictions and quotas.

use serde_json::json;

use crate::harness::*;

const PODS: &str = "/api/v1/namespaces/default/pods";

#[test]
fn a_write_to_scale_changes_the_replicas_and_the_generation() {
    let mut machine = Machine::new();
    machine.post(DEPLOYMENTS, &deployment("web"));
    let scale = format!("{DEPLOYMENTS}/web/scale");
    assert_eq!(machine.get(&scale).body["kind"], "Scale");
    let response = machine.patch(&scale, MERGE, &json!({"spec": {"replicas": 5}}));
    assert_eq!((response.status, &response.body["spec"]["replicas"]), (200, &json!(5)));
    let live = machine.get(&format!("{DEPLOYMENTS}/web")).body;
    assert_eq!((&live["spec"]["replicas"], &live["metadata"]["generation"]), (&json!(5), &json!(2)));
    let refused = machine.patch(&scale, MERGE, &json!({"spec": {"replicas": -1}}));
    assert_eq!(refused.failure().0, 422);
}

#[test]
fn a_pod_disruption_budget_prevents_an_eviction() {
    let mut machine = Machine::new();
    let pod = json!({"metadata": {"name": "one", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(machine.post(PODS, &pod).status, 201);
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    machine.patch(&format!("{PODS}/one/status"), STRATEGIC, &ready);
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget =
        json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    assert_eq!(machine.post(budgets, &budget).status, 201);
    machine.advance(1_000);
    assert_eq!(machine.get(&format!("{budgets}/web")).body["status"]["currentHealthy"], 1);
    let eviction = json!({"metadata": {"name": "one"}});
    assert_eq!(machine.post(&format!("{PODS}/one/eviction"), &eviction).failure().0, 429);
    machine.delete(&format!("{budgets}/web"));
    assert_eq!(machine.post(&format!("{PODS}/one/eviction"), &eviction).status, 201);
    assert_eq!(machine.get(&format!("{PODS}/one")).status, 404);
}

#[test]
fn a_resource_quota_limits_the_number_of_objects() {
    let mut machine = Machine::new();
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "1"}}});
    assert_eq!(machine.post("/api/v1/namespaces/default/resourcequotas", &quota).status, 201);
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(machine.post(secrets, &json!({"metadata": {"name": "one"}})).status, 201);
    let refused = machine.post(secrets, &json!({"metadata": {"name": "two"}}));
    let message = "secrets \"two\" is forbidden: exceeded quota: few, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1";
    assert_eq!(refused.failure(), (403, "Forbidden", message));
    machine.delete(&format!("{secrets}/one"));
    assert_eq!(machine.post(secrets, &json!({"metadata": {"name": "two"}})).status, 201);
}

#[test]
fn a_volume_claim_is_removed_when_no_pod_uses_it() {
    let mut machine = Machine::new();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    assert_eq!(machine.post(claims, &claim).status, 201);
    let pod = json!({"metadata": {"name": "one"}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    assert_eq!(machine.post(PODS, &pod).status, 201);
    machine.delete(&format!("{claims}/data"));
    machine.advance(5_000);
    assert_eq!(machine.get(&format!("{claims}/data")).status, 200, "a pod uses it");
    machine.delete(&format!("{PODS}/one"));
    machine.advance(5_000);
    assert_eq!(machine.get(&format!("{claims}/data")).status, 404);
}
