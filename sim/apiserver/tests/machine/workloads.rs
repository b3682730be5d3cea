//! Controllers that make pods, and the kubelets that run them.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, Lags, PodFate, PodRule};

use crate::harness::{DEPLOYMENTS, MERGE, Machine, STRATEGIC, deployment, namespace};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// A machine with every controller and two nodes.
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

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

#[test]
fn a_deployment_becomes_available_by_way_of_a_replica_set_and_pods() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(3));
    machine.pass(5_000);
    let live = machine.get(WEB).body;
    assert_eq!(live["status"]["availableReplicas"], 3, "{live}");
    assert_eq!(condition(&live, "Progressing")["reason"], "NewReplicaSetAvailable");
    assert_eq!(condition(&live, "Available")["status"], "True");
    assert_eq!(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let pods = items(&mut machine, PODS);
    let nodes: Vec<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert!(nodes.contains(&"node-1") && nodes.contains(&"node-2"), "{nodes:?}");
    assert_eq!(pods[0]["status"]["phase"], "Running");
    let resting = machine.server.revision();
    machine.pass(3_600_000);
    assert_eq!(machine.server.revision(), resting, "at rest nothing is written");
}

#[test]
fn a_new_template_rolls_and_the_old_one_comes_back_as_a_new_revision() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(4));
    machine.pass(5_000);
    let image =
        |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}});
    machine.patch(WEB, STRATEGIC, &image("nginx:2"));
    let mut least = 4;
    for _ in 0..100 {
        machine.pass(50);
        let status = machine.get(WEB).body["status"].clone();
        let all = status["replicas"].as_i64().unwrap_or_default();
        assert!(all <= 5, "a quarter more than wanted at most: {status}");
        least = least.min(status["availableReplicas"].as_i64().unwrap_or_default());
    }
    assert!(least >= 3, "a quarter less than wanted at most: {least}");
    let live = machine.get(WEB).body;
    assert_eq!(live["status"]["updatedReplicas"], 4, "{live}");
    assert_eq!(live["status"].get("unavailableReplicas"), None);
    assert_eq!(items(&mut machine, SETS).len(), 2);
    machine.patch(WEB, STRATEGIC, &image("nginx:1"));
    machine.pass(10_000);
    let sets = items(&mut machine, SETS);
    assert_eq!(sets.len(), 2, "the first replica set is used again");
    let live = machine.get(WEB).body;
    assert_eq!(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    let active = sets.iter().find(|set| set["spec"]["replicas"] == 4).expect("one has all");
    assert_eq!(active["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[test]
fn a_recreated_deployment_never_runs_two_versions_at_once() {
    let mut machine = machine();
    let mut web = web(2);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    machine.post(DEPLOYMENTS, &web);
    machine.pass(5_000);
    machine.patch(WEB, MERGE, &json!({"spec": {"template": {"metadata": {"labels": {"round": "2"}}}}}));
    for _ in 0..100 {
        machine.pass(50);
        let pods = items(&mut machine, PODS);
        let new = pods.iter().filter(|pod| pod["metadata"]["labels"]["round"] == "2").count();
        assert!(new == 0 || new == pods.len(), "old and new run together");
    }
    assert_eq!(machine.get(WEB).body["status"]["updatedReplicas"], 2);
    assert_eq!(machine.get(WEB).body["status"]["availableReplicas"], 2);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(2));
    machine.pass(5_000);
    let change = json!({"spec": {"paused": true, "template": {"metadata": {"labels": {"round": "2"}}}}});
    machine.patch(WEB, MERGE, &change);
    machine.patch(WEB, MERGE, &json!({"spec": {"replicas": 5}}));
    machine.pass(5_000);
    let live = machine.get(WEB).body;
    assert_eq!(items(&mut machine, SETS).len(), 1);
    assert_eq!(live["status"]["availableReplicas"], 5);
    assert_eq!(live["status"].get("updatedReplicas"), None);
    assert_eq!(condition(&live, "Progressing")["reason"], "DeploymentPaused");
    machine.patch(WEB, MERGE, &json!({"spec": {"paused": false}}));
    machine.pass(10_000);
    assert_eq!(machine.get(WEB).body["status"]["updatedReplicas"], 5);
}

#[test]
fn an_image_that_cannot_be_pulled_stops_a_rollout_until_the_rule_goes() {
    let mut machine = machine();
    let mut web = web(2);
    web["spec"]["progressDeadlineSeconds"] = json!(60);
    machine.post(DEPLOYMENTS, &web);
    machine.pass(5_000);
    let rule = PodRule { image: Some("broken".to_owned()), fate: PodFate::ImagePullError, ..PodRule::default() };
    machine.server.decide_fate(machine.now, rule);
    let broken = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "broken:1"}]}}}});
    machine.patch(WEB, MERGE, &broken);
    machine.pass(120_000);
    let live = machine.get(WEB).body;
    assert_eq!(condition(&live, "Progressing")["reason"], "ProgressDeadlineExceeded", "{live}");
    assert_eq!(live["status"]["availableReplicas"], 2, "the old pods stay");
    let pods = items(&mut machine, PODS);
    let reasons: Vec<&Value> =
        pods.iter().map(|pod| &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]).collect();
    assert!(reasons.iter().any(|reason| **reason == "ImagePullBackOff"), "{reasons:?}");
    machine.server.forget_fates(machine.now);
    machine.pass(10_000);
    assert_eq!(condition(&machine.get(WEB).body, "Progressing")["reason"], "NewReplicaSetAvailable");
}

#[test]
fn a_container_that_crashes_is_started_again_ever_more_slowly() {
    let mut machine = machine();
    let mut pod = json!({"metadata": {"name": "sick", "annotations": {"sindri.dev/pod-fate": "crash-loop"}}});
    pod["spec"] = json!({"containers": [{"name": "main", "image": "nginx:1"}]});
    machine.post(PODS, &pod);
    let restarts = |machine: &mut Machine| {
        machine.pass(120_000);
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
fn pods_that_a_replica_set_loses_come_back_and_strangers_are_adopted() {
    let mut machine = machine();
    machine.post(DEPLOYMENTS, &web(2));
    machine.pass(5_000);
    let pods = items(&mut machine, PODS);
    let lost = pods[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    machine.delete(&format!("{PODS}/{lost}"));
    machine.pass(5_000);
    assert_eq!(items(&mut machine, PODS).len(), 2);
    let mut stranger = json!({"metadata": {"name": "stranger"}});
    stranger["metadata"]["labels"] = pods[0]["metadata"]["labels"].clone();
    stranger["spec"] = json!({"containers": [{"name": "main", "image": "nginx:1"}]});
    machine.post(PODS, &stranger);
    machine.pass(5_000);
    let left = items(&mut machine, PODS);
    assert_eq!(left.len(), 2, "one too many goes");
    assert!(left.iter().all(|pod| pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"));
}

#[test]
fn services_list_the_pods_behind_them_and_which_are_ready() {
    let mut machine = machine();
    let service = json!({
        "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    machine.post("/api/v1/namespaces/default/services", &service);
    let mut web = web(2);
    let probe = json!({"httpGet": {"port": 80}});
    web["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe;
    machine.post(DEPLOYMENTS, &web);
    machine.pass(800);
    let endpoints = "/api/v1/namespaces/default/endpoints/web";
    let early = machine.get(endpoints).body["subsets"][0].clone();
    assert_eq!(early["notReadyAddresses"].as_array().map(Vec::len), Some(2), "{early}");
    machine.pass(5_000);
    let late = machine.get(endpoints).body["subsets"][0].clone();
    assert_eq!(late["addresses"].as_array().map(Vec::len), Some(2), "{late}");
    assert_eq!(late["ports"][0]["port"], 8080);
    let slices = items(&mut machine, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices");
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(2));
    assert_eq!(slices[0]["endpoints"][0]["conditions"]["ready"], true);
    machine.delete("/api/v1/namespaces/default/services/web");
    machine.pass(5_000);
    assert_eq!(machine.get(endpoints).status, 404);
    assert!(items(&mut machine, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").is_empty());
}

#[test]
fn each_controller_takes_as_long_as_it_is_told() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a valid time");
    let lags = Lags {
        deployment: SignedDuration::from_secs(10),
        replica_set: SignedDuration::from_secs(20),
        pod_start: SignedDuration::from_secs(40),
        ..Lags::default()
    };
    let server = ApiServer::with_lags(7, now, lags).with_workloads().with_kubelet(now, &["node-1"]);
    let mut machine = Machine { server, now };
    machine.pass(1_000);
    machine.post(DEPLOYMENTS, &web(1));
    machine.pass(9_000);
    assert!(items(&mut machine, SETS).is_empty());
    machine.pass(2_000);
    assert_eq!(items(&mut machine, SETS).len(), 1);
    assert!(items(&mut machine, PODS).is_empty());
    machine.pass(20_000);
    assert_eq!(items(&mut machine, PODS)[0]["status"]["phase"], "Pending");
    machine.pass(40_000);
    assert_eq!(items(&mut machine, PODS)[0]["status"]["phase"], "Running");
}

#[test]
fn a_deployment_that_is_resized_in_the_middle_of_a_rollout_shares_the_difference_out() {
    let mut machine = machine();
    let mut web = web(10);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    machine.post(DEPLOYMENTS, &web);
    machine.pass(5_000);
    let rule = PodRule { image: Some("broken".to_owned()), fate: PodFate::ImagePullError, ..PodRule::default() };
    machine.server.decide_fate(machine.now, rule);
    let broken = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "broken:1"}]}}}});
    machine.patch(WEB, STRATEGIC, &broken);
    machine.pass(5_000);
    let sizes = |machine: &mut Machine| {
        let sets = items(machine, SETS);
        let mut sizes: Vec<i64> = sets.iter().filter_map(|set| set["spec"]["replicas"].as_i64()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(&mut machine), [5, 8]);
    machine.patch(WEB, MERGE, &json!({"spec": {"replicas": 15}}));
    machine.pass(1_000);
    assert_eq!(sizes(&mut machine), [7, 11], "three above fifteen, in proportion");
}

#[test]
fn a_pod_that_no_node_fits_says_why_and_gets_the_first_that_does() {
    let mut machine = machine();
    let pod = json!({
        "metadata": {"name": "picky"},
        "spec": {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "main", "image": "nginx:1"}]},
    });
    machine.post(PODS, &pod);
    machine.pass(5_000);
    let live = machine.get(&format!("{PODS}/picky")).body;
    let why = condition(&live, "PodScheduled");
    assert_eq!(why["reason"], "Unschedulable");
    assert_eq!(why["message"], "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
    machine.patch("/api/v1/nodes/node-2", MERGE, &json!({"metadata": {"labels": {"disk": "fast"}}}));
    machine.pass(5_000);
    let live = machine.get(&format!("{PODS}/picky")).body;
    assert_eq!(live["spec"]["nodeName"], "node-2");
    assert_eq!(live["status"]["phase"], "Running");
}

#[test]
fn a_namespace_with_pods_that_run_goes_when_they_have_ended() {
    let mut machine = machine();
    machine.post("/api/v1/namespaces", &namespace("shop"));
    machine.pass(1_000);
    machine.post("/apis/apps/v1/namespaces/shop/deployments", &web(2));
    machine.pass(5_000);
    machine.delete("/api/v1/namespaces/shop");
    machine.pass(10_000);
    assert_eq!(machine.get("/api/v1/namespaces/shop").status, 404);
    assert!(items(&mut machine, "/api/v1/pods").is_empty());
}

#[test]
fn two_runs_of_the_same_machine_are_the_same() {
    let run = || {
        let mut machine = machine();
        machine.post(DEPLOYMENTS, &web(3));
        machine.pass(10_000);
        let objects: Vec<String> = machine.server.objects().map(|(key, object)| format!("{key:?} {object}")).collect();
        objects
    };
    assert_eq!(run(), run());
}
