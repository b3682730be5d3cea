//! Subresources: scales, evictions, logs and parts of pods; and the form of responses.

use serde_json::{Value, json};
use sindri_apiserver::{PodRule, Response};

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
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
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

/// A machine with a running pod.
fn machine_with_pod() -> Machine {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_kubelet(now, &["node-1"]);
    let containers = json!([{"name": "a", "image": "nginx:1"}, {"name": "b", "image": "nginx:1"}]);
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers}});
    assert_eq!(machine.post(PODS, &pod).status, 201);
    machine
}

#[test]
fn a_running_container_has_a_log() {
    let mut machine = machine_with_pod();
    let log = format!("{PODS}/web/log");
    let message = "a container name must be specified for pod web, choose one of: [a b]";
    assert_eq!(machine.get(&log).failure(), (400, "BadRequest", message));
    assert_eq!(machine.get(&format!("{log}?container=c")).failure().2, "container c is not valid for pod web");
    machine.advance(10_000);
    let first = machine.get(&format!("{log}?container=a"));
    assert_eq!((first.status, first.body), (200, json!("a started\n")));
    let rule = PodRule { log: Some("one\ntwo\nthree\n".to_owned()), ..PodRule::default() };
    machine.server.add_pod_rule(machine.now, rule);
    assert_eq!(machine.get(&format!("{log}?container=a&tailLines=2")).body, json!("two\nthree\n"));
    assert_eq!(machine.get(&format!("{log}?container=a&limitBytes=5")).body, json!("one\nt"));
}

#[test]
fn ephemeral_containers_are_added_and_never_removed() {
    let mut machine = machine_with_pod();
    let target = format!("{PODS}/web/ephemeralcontainers");
    let added = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    let patched = machine.patch(&target, STRATEGIC, &added);
    assert_eq!(patched.body["spec"]["ephemeralContainers"][0]["name"], "debug", "{}", patched.body);
    assert_eq!(machine.patch(&format!("{PODS}/web"), STRATEGIC, &added).status, 200);
    let mut without = machine.get(&target).body;
    without["spec"]["ephemeralContainers"] = json!([]);
    assert_eq!(machine.put(&target, &without).failure().0, 422);
}

#[test]
fn resources_of_containers_are_resized() {
    let mut machine = machine_with_pod();
    let resized = json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}});
    assert_eq!(machine.patch(&format!("{PODS}/web"), STRATEGIC, &resized).failure().0, 422);
    let patched = machine.patch(&format!("{PODS}/web/resize"), STRATEGIC, &resized);
    assert_eq!(patched.body["spec"]["containers"][0]["resources"], json!({"requests": {"cpu": "1"}}));
}

#[test]
fn a_response_is_one_line_or_indented() {
    let mut machine = Machine::new();
    let mut text = |target: &str, agent: &str| {
        let mut request = machine.request(http::Method::GET, target, "", &Value::Null);
        request.headers.user_agent = agent.to_owned();
        match machine.server.handle(machine.now, &request, None) {
            Response::Full { body, .. } => String::from_utf8_lossy(&body).into_owned(),
            other => panic!("expected a complete response, got {other:?}"),
        }
    };
    let target = "/api/v1/namespaces/default";
    let line = text(target, "kubectl/v1.35.0");
    assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
    for (target, agent) in [("/api/v1/namespaces/default?pretty=true", "x"), (target, "curl/8")] {
        let indented = text(target, agent);
        assert!(indented.starts_with("{\n  \"") && indented.ends_with('}'), "{indented}");
    }
    assert_eq!(text("/api/v1/namespaces/default?pretty=false", "curl/8"), line);
    let metrics = text("/metrics", "prometheus");
    assert!(metrics.contains("apiserver_storage_objects{resource=\"namespaces\"} 4\n"), "{metrics}");
}

#[test]
fn a_log_needs_no_container_beside_init_containers_and_checks_its_options() {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_kubelet(now, &["node-1"]);
    let pod = json!({"metadata": {"name": "web"}, "spec": {
        "containers": [{"name": "a", "image": "nginx:1"}],
        "initContainers": [{"name": "first", "image": "busybox"}],
    }});
    assert_eq!(machine.post(PODS, &pod).status, 201);
    machine.advance(10_000);
    let log = format!("{PODS}/web/log");
    assert_eq!(machine.get(&log).body, json!("a started\n"));
    let message = "previous terminated container \"a\" in pod \"web\" not found";
    assert_eq!(machine.get(&format!("{log}?previous=true")).failure(), (400, "BadRequest", message));
    assert_eq!(machine.get(&format!("{log}?tailLines=-1")).status, 422);
    assert_eq!(machine.get(&format!("{log}?tailLines=abc")).status, 400);
}

#[test]
fn sidecars_and_ephemeral_containers_run() {
    let mut machine = machine_with_pod();
    let pod = json!({"metadata": {"name": "mesh"}, "spec": {
        "containers": [{"name": "a", "image": "nginx:1"}],
        "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}],
    }});
    assert_eq!(machine.post(PODS, &pod).status, 201);
    machine.advance(10_000);
    let live = machine.get(&format!("{PODS}/mesh")).body;
    let sidecar = &live["status"]["initContainerStatuses"][0];
    assert!(sidecar["state"]["running"].is_object() && sidecar["ready"] == true, "{sidecar}");
    let added = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    machine.patch(&format!("{PODS}/web/ephemeralcontainers"), STRATEGIC, &added);
    machine.advance(10_000);
    let live = machine.get(&format!("{PODS}/web")).body;
    assert!(live["status"]["ephemeralContainerStatuses"][0]["state"]["running"].is_object(), "{live}");
}

#[test]
fn scheduling_gates_are_removed_and_the_node_is_not_changed() {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_kubelet(now, &["node-1"]);
    let pod = json!({"metadata": {"name": "gated"}, "spec": {
        "schedulingGates": [{"name": "example.io/quota"}], "containers": [{"name": "a", "image": "nginx:1"}],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    }});
    assert_eq!(machine.post(PODS, &pod).status, 201);
    let target = format!("{PODS}/gated");
    let another = json!([{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": "example.io/other"}}]);
    assert_eq!(machine.patch(&target, "application/json-patch+json", &another).status, 422);
    for forbidden in [json!({"nodeName": "node-1"}), json!({"tolerations": []})] {
        assert_eq!(machine.patch(&target, MERGE, &json!({ "spec": forbidden })).status, 422, "{forbidden}");
    }
    machine.advance(5_000);
    assert!(machine.get(&target).body["spec"]["nodeName"].is_null());
    let open = json!([{"op": "remove", "path": "/spec/schedulingGates"}]);
    assert_eq!(machine.patch(&target, "application/json-patch+json", &open).status, 200);
    machine.advance(5_000);
    assert_eq!(machine.get(&target).body["spec"]["nodeName"], "node-1");
}
