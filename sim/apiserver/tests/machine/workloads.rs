//! Controllers that create pods, and the kubelets that run them.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, ControllerDelays, PodOutcome, PodRule};

use crate::harness::{DEPLOYMENTS, MERGE, Machine, STRATEGIC, deployment, namespace};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// Returns a server with all workload controllers and two nodes.
fn machine() -> Machine {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_workloads().with_kubelet(now, &["node-1", "node-2"]);
    machine
}

fn web(replicas: i64) -> Value {
    let mut web = deployment("web");
    web["spec"]["replicas"] = json!(replicas);
    web
}

fn items(machine: &mut Machine, path: &str) -> Vec<Value> {
    machine.get(path).body["items"].as_array().cloned().unwrap_or_default()
}

fn condition(object: &Value, condition_type: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == condition_type).unwrap_or_default()
}

#[test]
fn a_deployment_becomes_available_through_a_replica_set_and_its_pods() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(3));
    machine.advance(5_000);
    let live = machine.get(WEB).body;
    assert_eq!(live["status"]["availableReplicas"], 3, "{live}");
    assert_eq!(condition(&live, "Progressing")["reason"], "NewReplicaSetAvailable");
    assert_eq!(condition(&live, "Available")["status"], "True");
    assert_eq!(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let pods = items(&mut machine, PODS);
    let nodes: Vec<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert!(nodes.contains(&"node-1") && nodes.contains(&"node-2"), "{nodes:?}");
    assert_eq!(pods[0]["status"]["phase"], "Running");
    let idle = machine.server.revision();
    machine.advance(3_600_000);
    assert_eq!(machine.server.revision(), idle, "nothing is written while idle");
}

#[test]
fn a_new_template_is_rolled_out_and_a_rollback_gets_a_new_revision() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(4));
    machine.advance(5_000);
    let image =
        |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
    machine.patch(WEB, STRATEGIC, &image("nginx:2"));
    let mut least = 4;
    for _ in 0..100 {
        machine.advance(50);
        let status = machine.get(WEB).body["status"].clone();
        let all = status["replicas"].as_i64().unwrap_or_default();
        assert!(all <= 5, "at most a quarter above the replicas: {status}");
        least = least.min(status["availableReplicas"].as_i64().unwrap_or_default());
    }
    assert!(least >= 3, "at most a quarter below the replicas: {least}");
    let live = machine.get(WEB).body;
    assert_eq!(live["status"]["updatedReplicas"], 4, "{live}");
    assert_eq!(live["status"].get("unavailableReplicas"), None);
    assert_eq!(items(&mut machine, SETS).len(), 2);
    machine.patch(WEB, STRATEGIC, &image("nginx:1"));
    machine.advance(10_000);
    let sets = items(&mut machine, SETS);
    assert_eq!(sets.len(), 2, "the first replica set is used again");
    let live = machine.get(WEB).body;
    assert_eq!(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    let active = sets.iter().find(|set| set["spec"]["replicas"] == 4).expect("one has all");
    assert_eq!(active["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[test]
fn the_recreate_strategy_never_runs_old_and_new_pods_together() {
    let mut machine = machine();
    let mut web = web(2);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    machine.post(DEPLOYMENTS, &web);
    machine.advance(5_000);
    machine.patch(WEB, MERGE, &json!({"spec": {"template": {"metadata": {"labels": {"round": "2"}}}}}));
    for _ in 0..100 {
        machine.advance(50);
        let pods = items(&mut machine, PODS);
        let new = pods.iter().filter(|pod| pod["metadata"]["labels"]["round"] == "2").count();
        assert!(new == 0 || new == pods.len(), "old and new run together");
    }
    assert_eq!(machine.get(WEB).body["status"]["updatedReplicas"], 2);
    assert_eq!(machine.get(WEB).body["status"]["availableReplicas"], 2);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll_out() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(2));
    machine.advance(5_000);
    let change = json!({"spec": {"paused": true, "template": {"metadata": {"labels": {"round": "2"}}}}});
    machine.patch(WEB, MERGE, &change);
    machine.patch(WEB, MERGE, &json!({"spec": {"replicas": 5}}));
    machine.advance(5_000);
    let live = machine.get(WEB).body;
    assert_eq!(items(&mut machine, SETS).len(), 1);
    assert_eq!(live["status"]["availableReplicas"], 5);
    assert_eq!(live["status"].get("updatedReplicas"), None);
    assert_eq!(condition(&live, "Progressing")["reason"], "DeploymentPaused");
    machine.patch(WEB, MERGE, &json!({"spec": {"paused": false}}));
    machine.advance(10_000);
    assert_eq!(machine.get(WEB).body["status"]["updatedReplicas"], 5);
}

#[test]
fn an_image_pull_error_stops_a_rollout_until_its_rule_is_removed() {
    let mut machine = machine();
    let mut web = web(2);
    web["spec"]["progressDeadlineSeconds"] = json!(60);
    machine.post(DEPLOYMENTS, &web);
    machine.advance(5_000);
    let rule = PodRule { image: Some("broken".to_owned()), outcome: PodOutcome::ImagePullError, ..PodRule::default() };
    machine.server.add_pod_rule(machine.now, rule);
    let broken = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "broken:1"}]}}}});
    machine.patch(WEB, MERGE, &broken);
    machine.advance(120_000);
    let live = machine.get(WEB).body;
    assert_eq!(condition(&live, "Progressing")["reason"], "ProgressDeadlineExceeded", "{live}");
    assert_eq!(live["status"]["availableReplicas"], 2, "the old pods stay");
    let pods = items(&mut machine, PODS);
    let reasons: Vec<&Value> =
        pods.iter().map(|pod| &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]).collect();
    assert!(reasons.iter().any(|reason| **reason == "ImagePullBackOff"), "{reasons:?}");
    machine.server.clear_pod_rules(machine.now);
    machine.advance(10_000);
    assert_eq!(condition(&machine.get(WEB).body, "Progressing")["reason"], "NewReplicaSetAvailable");
}

#[test]
fn a_crashing_container_is_restarted_with_backoff() {
    let mut machine = machine();
    let mut pod = json!({"metadata": {"name": "sick", "annotations": {"sindri.dev/pod-fate": "crash-loop"}}});
    pod["spec"] = json!({"containers": [{"name": "main", "image": "nginx:1"}]});
    machine.post(PODS, &pod);
    let restarts = |machine: &mut Machine| {
        machine.advance(120_000);
        machine.get(&format!("{PODS}/sick")).body["status"]["containerStatuses"][0]["restartCount"].as_i64()
    };
    let (first, second) = (restarts(&mut machine).expect("a count"), restarts(&mut machine).expect("a count"));
    assert!(first >= 3, "{first}");
    assert!(second - first < first, "{first} then {second}");
    let live = machine.get(&format!("{PODS}/sick")).body;
    assert_eq!(live["status"]["phase"], "Running");
    assert_eq!(condition(&live, "Ready")["status"], "False");
}

#[test]
fn a_replica_set_replaces_lost_pods_and_adopts_matching_ones() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(2));
    machine.advance(5_000);
    let pods = items(&mut machine, PODS);
    let lost = pods[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    machine.delete(&format!("{PODS}/{lost}"));
    machine.advance(5_000);
    assert_eq!(items(&mut machine, PODS).len(), 2);
    let mut unowned = json!({"metadata": {"name": "unowned"}});
    unowned["metadata"]["labels"] = pods[0]["metadata"]["labels"].clone();
    unowned["spec"] = json!({"containers": [{"name": "main", "image": "nginx:1"}]});
    machine.post(PODS, &unowned);
    machine.advance(5_000);
    let remaining = items(&mut machine, PODS);
    assert_eq!(remaining.len(), 2, "the surplus pod is deleted");
    assert!(remaining.iter().all(|pod| pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"));
}

#[test]
fn endpoints_list_the_pods_of_a_service_and_their_readiness() {
    let mut machine = machine();
    let service = json!({
        "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    machine.post("/api/v1/namespaces/default/services", &service);
    let mut web = web(2);
    let probe = json!({"httpGet": {"port": 80}});
    web["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe;
    machine.post(DEPLOYMENTS, &web);
    machine.advance(800);
    let endpoints = "/api/v1/namespaces/default/endpoints/web";
    let early = machine.get(endpoints).body["subsets"][0].clone();
    assert_eq!(early["notReadyAddresses"].as_array().map(Vec::len), Some(2), "{early}");
    machine.advance(5_000);
    let late = machine.get(endpoints).body["subsets"][0].clone();
    assert_eq!(late["addresses"].as_array().map(Vec::len), Some(2), "{late}");
    assert_eq!(late["ports"][0]["port"], 8080);
    let own_slices =
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb";
    let slices = items(&mut machine, own_slices);
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(2));
    assert_eq!(slices[0]["endpoints"][0]["conditions"]["ready"], true);
    machine.delete("/api/v1/namespaces/default/services/web");
    machine.advance(5_000);
    assert_eq!(machine.get(endpoints).status, 404);
    assert!(items(&mut machine, own_slices).is_empty());
}

#[test]
fn each_controller_has_its_configured_lag() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a valid time");
    let lags = ControllerDelays {
        deployment: SignedDuration::from_secs(10),
        replica_set: SignedDuration::from_secs(20),
        pod_start: SignedDuration::from_secs(40),
        ..ControllerDelays::default()
    };
    let server = ApiServer::with_delays(7, now, lags).with_workloads().with_kubelet(now, &["node-1"]);
    let mut machine = Machine { server, now };
    machine.advance(1_000);
    machine.post(DEPLOYMENTS, &web(1));
    machine.advance(9_000);
    assert!(items(&mut machine, SETS).is_empty());
    machine.advance(2_000);
    assert_eq!(items(&mut machine, SETS).len(), 1);
    assert!(items(&mut machine, PODS).is_empty());
    machine.advance(20_000);
    assert_eq!(items(&mut machine, PODS)[0]["status"]["phase"], "Pending");
    machine.advance(40_000);
    assert_eq!(items(&mut machine, PODS)[0]["status"]["phase"], "Running");
}

#[test]
fn scaling_during_a_rollout_scales_the_replica_sets_in_proportion() {
    let mut machine = machine();
    let mut web = web(10);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    machine.post(DEPLOYMENTS, &web);
    machine.advance(5_000);
    let rule = PodRule { image: Some("broken".to_owned()), outcome: PodOutcome::ImagePullError, ..PodRule::default() };
    machine.server.add_pod_rule(machine.now, rule);
    let broken = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "broken:1"}]}}}});
    machine.patch(WEB, STRATEGIC, &broken);
    machine.advance(5_000);
    let sizes = |machine: &mut Machine| {
        let sets = items(machine, SETS);
        let mut sizes: Vec<i64> = sets.iter().filter_map(|set| set["spec"]["replicas"].as_i64()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(&mut machine), [5, 8]);
    machine.patch(WEB, MERGE, &json!({"spec": {"replicas": 15}}));
    machine.advance(1_000);
    assert_eq!(sizes(&mut machine), [7, 11], "three above fifteen, in proportion");
}

#[test]
fn an_unschedulable_pod_reports_why_and_is_scheduled_once_a_node_matches() {
    let mut machine = machine();
    let pod = json!({
        "metadata": {"name": "picky"},
        "spec": {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "main", "image": "nginx:1"}]},
    });
    machine.post(PODS, &pod);
    machine.advance(5_000);
    let live = machine.get(&format!("{PODS}/picky")).body;
    let scheduled = condition(&live, "PodScheduled");
    assert_eq!(scheduled["reason"], "Unschedulable");
    assert_eq!(scheduled["message"], "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
    machine.patch("/api/v1/nodes/node-2", MERGE, &json!({"metadata": {"labels": {"disk": "fast"}}}));
    machine.advance(5_000);
    let live = machine.get(&format!("{PODS}/picky")).body;
    assert_eq!(live["spec"]["nodeName"], "node-2");
    assert_eq!(live["status"]["phase"], "Running");
}

#[test]
fn a_namespace_is_removed_after_its_running_pods_have_ended() {
    let mut machine = machine();
    machine.post("/api/v1/namespaces", &namespace("shop"));
    machine.advance(1_000);
    machine.post("/apis/apps/v1/namespaces/shop/deployments", &web(2));
    machine.advance(5_000);
    machine.delete("/api/v1/namespaces/shop");
    machine.advance(10_000);
    assert_eq!(machine.get("/api/v1/namespaces/shop").status, 404);
    assert!(items(&mut machine, "/api/v1/pods").is_empty());
}

#[test]
fn two_runs_with_the_same_seed_are_identical() {
    let run = || {
        let mut machine = machine();
        machine.post(DEPLOYMENTS, &web(3));
        machine.advance(10_000);
        let objects: Vec<String> = machine.server.objects().map(|(key, object)| format!("{key:?} {object}")).collect();
        objects
    };
    assert_eq!(run(), run());
}

#[test]
fn a_readiness_gate_keeps_a_pod_unready_until_its_condition_is_true() {
    let mut machine = machine();
    let pod = json!({
        "metadata": {"name": "gated"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "readinessGates": [{"conditionType": "example.com/open"}]},
    });
    machine.post(PODS, &pod);
    machine.advance(3_000);
    let path = format!("{PODS}/gated");
    let live = machine.get(&path).body;
    assert_eq!(condition(&live, "ContainersReady")["status"], "True", "{live}");
    let ready = condition(&live, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("ReadinessGatesNotReady")));
    let open = json!({"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}});
    machine.patch(&format!("{path}/status"), STRATEGIC, &open);
    machine.advance(1_000);
    assert_eq!(condition(&machine.get(&path).body, "Ready")["status"], "True");
}

#[test]
fn a_deleted_pod_is_unready_before_it_is_gone() {
    let mut machine = machine();
    machine.post(PODS, &json!({"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}));
    machine.advance(3_000);
    let version = machine.get(&format!("{PODS}/one")).resource_version().to_owned();
    let watch = machine.watch(&format!("{PODS}?watch=true&resourceVersion={version}"));
    machine.delete(&format!("{PODS}/one"));
    machine.advance(3_000);
    let lines = machine.server.watch_events(watch, machine.now);
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).expect("JSON")).collect();
    let last = events.last().expect("events");
    assert_eq!(last["type"], "DELETED");
    assert_eq!(condition(&last["object"], "Ready")["status"], "False", "{last}");
}

#[test]
fn the_pods_of_a_removed_node_are_replaced() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(2));
    machine.advance(10_000);
    machine.delete("/api/v1/nodes/node-1");
    machine.advance(60_000);
    let pods = items(&mut machine, PODS);
    let nodes: Vec<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert_eq!(nodes, ["node-2", "node-2"]);
}

#[test]
fn a_pod_on_a_node_that_does_not_exist_is_removed_and_keeps_no_namespace() {
    let mut machine = machine();
    machine.post("/api/v1/namespaces", &namespace("lost"));
    machine.advance(1_000);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]},
    });
    assert_eq!(machine.post("/api/v1/namespaces/lost/pods", &pod).status, 201);
    machine.delete("/api/v1/namespaces/lost");
    machine.advance(30_000);
    assert_eq!(machine.get("/api/v1/namespaces/lost").status, 200, "no kubelet ends the pod");
    machine.advance(60_000);
    assert_eq!(machine.get("/api/v1/namespaces/lost").status, 404);
}
