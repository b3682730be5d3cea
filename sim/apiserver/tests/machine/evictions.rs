//! Evictions, collections and `finalize`: the options of a delete, and disruption budgets.

use serde_json::{Value, json};

use crate::harness::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A machine with nodes and workload controllers.
fn machine() -> Machine {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_workloads().with_kubelet(now, &["node-1"]);
    machine
}

fn pod(name: &str, app: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    })
}

fn budget(machine: &mut Machine, spec: &Value) {
    assert_eq!(machine.post(BUDGETS, &json!({"metadata": {"name": "budget"}, "spec": spec})).status, 201);
    machine.advance(1_000);
}

fn evict(machine: &mut Machine, name: &str, options: &Value) -> u16 {
    let eviction = json!({"metadata": {"name": name}, "deleteOptions": options});
    machine.post(&format!("{PODS}/{name}/eviction"), &eviction).status
}

#[test]
fn an_eviction_has_the_options_of_a_delete() {
    let mut machine = machine();
    machine.post(PODS, &pod("web", "web"));
    machine.advance(10_000);
    let foreign = json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}});
    assert_eq!(evict(&mut machine, "web", &foreign), 409);
    assert_eq!(evict(&mut machine, "web", &json!({"dryRun": ["All"]})), 201);
    assert!(machine.get(&format!("{PODS}/web")).body["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(evict(&mut machine, "web", &json!({"gracePeriodSeconds": 3})), 201);
    assert_eq!(machine.get(&format!("{PODS}/web")).body["metadata"]["deletionGracePeriodSeconds"], 3);
}

#[test]
fn a_collection_is_deleted_with_the_requested_grace_period() {
    let mut machine = Machine::new();
    let mut bound = pod("bound", "web");
    bound["spec"]["nodeName"] = json!("node-1");
    assert_eq!(machine.post(PODS, &bound).status, 201);
    machine.delete(&format!("{PODS}?gracePeriodSeconds=0&dryRun=All"));
    assert_eq!(machine.get(&format!("{PODS}/bound")).status, 200);
    machine.delete(&format!("{PODS}?gracePeriodSeconds=0"));
    assert_eq!(machine.get(&format!("{PODS}/bound")).status, 404);
}

#[test]
fn finalize_tries_a_dry_run_only_and_checks_the_resource_version() {
    let mut machine = Machine::new();
    machine.post("/api/v1/namespaces", &namespace("kept"));
    machine.advance(1_000);
    let mut held = config_map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.io/wait"]);
    machine.post("/api/v1/namespaces/kept/configmaps", &held);
    machine.delete("/api/v1/namespaces/kept");
    machine.advance(10_000);
    let mut body = machine.get("/api/v1/namespaces/kept").body;
    body["spec"] = json!({"finalizers": []});
    assert_eq!(machine.put("/api/v1/namespaces/kept/finalize?dryRun=All", &body).status, 200);
    assert_eq!(machine.get("/api/v1/namespaces/kept").status, 200);
    let current = body["metadata"]["resourceVersion"].clone();
    body["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(machine.put("/api/v1/namespaces/kept/finalize", &body).status, 409);
    body["metadata"]["resourceVersion"] = current;
    assert_eq!(machine.put("/api/v1/namespaces/kept/finalize", &body).status, 200);
    assert_eq!(machine.get("/api/v1/namespaces/kept").status, 404);
}

#[test]
fn a_budget_counts_the_replicas_of_the_controller() {
    let mut machine = machine();
    let mut web = deployment("web");
    web["spec"]["replicas"] = json!(3);
    machine.post(DEPLOYMENTS, &web);
    machine.advance(10_000);
    budget(&mut machine, &json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}));
    let pods = machine.get(PODS).body["items"].as_array().cloned().expect("a list");
    let names: Vec<String> =
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect();
    let statuses: Vec<u16> = names.iter().map(|name| evict(&mut machine, name, &Value::Null)).collect();
    assert_eq!(statuses, [201, 429, 429]);
}

#[test]
fn a_budget_protects_the_pods_that_it_selects() {
    let mut machine = machine();
    machine.post(PODS, &pod("web", "web"));
    machine.post(PODS, &pod("db", "db"));
    machine.advance(10_000);
    let expression = json!({"key": "app", "operator": "In", "values": ["db"]});
    budget(&mut machine, &json!({"minAvailable": 1, "selector": {"matchExpressions": [expression]}}));
    assert_eq!(machine.get(&format!("{BUDGETS}/budget")).body["status"]["expectedPods"], 1);
    assert_eq!(evict(&mut machine, "db", &Value::Null), 429);
    assert_eq!(evict(&mut machine, "web", &Value::Null), 201);
}

#[test]
fn a_pod_that_does_not_run_is_evicted_in_spite_of_a_budget() {
    let mut machine = machine();
    for (name, fate) in [("pending", "image-pull-error"), ("unready", "never-ready"), ("ready", "runs")] {
        let mut body = pod(name, "web");
        body["metadata"]["annotations"] = json!({ "sindri.dev/pod-fate": fate });
        machine.post(PODS, &body);
    }
    machine.advance(10_000);
    let selector = json!({"matchLabels": {"app": "web"}});
    budget(
        &mut machine,
        &json!({"minAvailable": 3, "selector": selector, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
    );
    assert_eq!(evict(&mut machine, "pending", &Value::Null), 201);
    assert_eq!(evict(&mut machine, "ready", &Value::Null), 429);
    assert_eq!(evict(&mut machine, "unready", &Value::Null), 201);
}
