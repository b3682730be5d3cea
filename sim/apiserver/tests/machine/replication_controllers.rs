//! ReplicationControllers: their pods, their status, and what remains after they are deleted.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{MERGE, Machine};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";
const WEB: &str = "/api/v1/namespaces/default/replicationcontrollers/web";

fn machine() -> Machine {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_workloads().with_kubelet(now, &["node-1"]);
    machine
}

fn web(replicas: i64) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    })
}

fn pods(machine: &mut Machine) -> Vec<Value> {
    machine.get(PODS).body["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_replication_controller_keeps_its_number_of_pods() {
    let mut machine = machine();
    let created = machine.post(CONTROLLERS, &web(3)).body;
    assert_eq!(created["spec"]["selector"], json!({"app": "web"}), "the selector is that of the template");
    machine.advance(3_000);
    let live = machine.get(WEB).body;
    let expected = json!({
        "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 1,
    });
    assert_eq!(live["status"], expected);
    let owner = pods(&mut machine)[0]["metadata"]["ownerReferences"][0].clone();
    let expected = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "name": "web", "uid": created["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(owner, expected);
    machine.patch(&format!("{WEB}/scale"), MERGE, &json!({"spec": {"replicas": 1}}));
    machine.advance(3_000);
    assert_eq!(pods(&mut machine).len(), 1);
    let events = machine.get("/api/v1/namespaces/default/events").body;
    let reasons: Vec<&Value> = events["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|event| event["source"]["component"] == "replication-controller")
        .map(|event| &event["reason"])
        .collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "SuccessfulCreate").count(), 3);
    assert_eq!(reasons.iter().filter(|reason| **reason == "SuccessfulDelete").count(), 2);
}

#[test]
fn a_replication_controller_adopts_matching_pods_and_releases_others() {
    let mut machine = machine();
    let pod = json!({
        "metadata": {"name": "alone", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    machine.post(PODS, &pod);
    machine.post(CONTROLLERS, &web(1));
    machine.advance(3_000);
    let adopted = pods(&mut machine);
    assert_eq!(adopted.len(), 1);
    assert_eq!(adopted[0]["metadata"]["ownerReferences"][0]["kind"], "ReplicationController");
    machine.patch(&format!("{PODS}/alone"), MERGE, &json!({"metadata": {"labels": {"app": "other"}}}));
    machine.advance(3_000);
    let all = pods(&mut machine);
    assert_eq!(all.len(), 2, "the released pod is replaced");
    let released = all.iter().find(|pod| pod["metadata"]["name"] == "alone").expect("it is left");
    assert_eq!(released["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_delete_without_a_policy_leaves_the_pods_of_replication_controllers_and_jobs() {
    let mut machine = machine();
    machine.post(CONTROLLERS, &web(1));
    let job = json!({
        "metadata": {"name": "job"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    machine.post("/apis/batch/v1/namespaces/default/jobs", &job);
    machine.advance(3_000);
    assert_eq!(machine.delete(WEB).status, 200);
    let request = machine.request(Method::DELETE, "/apis/batch/v1/namespaces/default/jobs/job", "", &Value::Null);
    let deleted = machine.server.handle(machine.now, &request, None);
    assert!(deleted.header("warning").expect("a warning").contains("child pods are preserved by default"));
    machine.advance(5_000);
    assert_eq!(machine.get(WEB).status, 404);
    let left = pods(&mut machine);
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|pod| pod["metadata"].get("ownerReferences").is_none()), "{left:?}");
    machine.post(CONTROLLERS, &web(1));
    machine.advance(1_000);
    machine.delete(&format!("{WEB}?propagationPolicy=Background"));
    machine.advance(5_000);
    assert_eq!(pods(&mut machine).len(), 1, "only the pod of the job is left");
}

#[test]
fn invalid_replication_controllers_are_rejected() {
    let mut machine = machine();
    let bare = json!({"metadata": {"name": "web"}, "spec": {"replicas": -1}});
    let response = machine.post(CONTROLLERS, &bare);
    let message = "ReplicationController \"web\" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.selector: Required value, spec.template: Required value]";
    assert_eq!(response.failure(), (422, "Invalid", message));
    let mut mismatched = web(1);
    mismatched["spec"]["selector"] = json!({"app": "other"});
    let response = machine.post(CONTROLLERS, &mismatched);
    let (status, _, message) = response.failure();
    assert_eq!(status, 422);
    assert!(message.contains("`selector` does not match template `labels`"), "{message}");
}
