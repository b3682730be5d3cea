//! Aggregated health of several objects.

use serde_json::{Value, json};
use sindri_health::{AssessedObject, CONDITIONS_MAX, OverallHealth, RESOURCES_MAX, summarize};

fn thing(name: &str, condition: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name, "namespace": "shop" }, "status": { "conditions": [condition] } })
}

fn ready(name: &str) -> AssessedObject {
    AssessedObject::new(&thing(name, json!({ "type": "Ready", "status": "True" })), &[])
}

fn waits(name: &str, reason: &str) -> AssessedObject {
    AssessedObject::new(
        &thing(name, json!({ "type": "Ready", "status": "False", "reason": reason, "message": "words" })),
        &[],
    )
}

fn stalled(name: &str) -> AssessedObject {
    AssessedObject::new(&thing(name, json!({ "type": "Stalled", "status": "True", "reason": "BadAddress" })), &[])
}

fn pod(name: &str, is_ready: bool) -> Value {
    let truth = if is_ready { "True" } else { "False" };
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "shop" }, "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": truth }] } })
}

#[test]
fn the_worst_object_decides_and_comes_first() {
    let summary = summarize(&[ready("a"), waits("d", "Waiting"), stalled("c"), waits("b", "Waiting")]);
    assert_eq!((summary.status, summary.ready, summary.total), (OverallHealth::Failing, 1, 4));
    assert_eq!(summary.conditions, ["BadAddress", "Waiting"]);
    let names: Vec<&str> = summary.resources.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!(names, ["c", "b", "d", "a"]);
    insta::assert_snapshot!("summary", serde_json::to_string_pretty(&summary.to_json()).expect("it is JSON"));
}

#[test]
fn the_status_is_one_of_the_broker_api() {
    let nothing = AssessedObject::new(&json!({}), &[]);
    for (objects, status) in [
        (vec![], "unknown"),
        (vec![ready("a")], "healthy"),
        (vec![ready("a"), nothing.clone()], "unknown"),
        (vec![waits("b", "Waiting"), nothing.clone()], "degraded"),
        (vec![waits("b", "Waiting"), stalled("a"), nothing], "failing"),
    ] {
        let said = summarize(&objects).status.to_string();
        assert_eq!(said, status);
        said.parse::<sindri_model::wire::HealthStatus>().expect("the broker knows the word");
    }
}

#[test]
fn a_pod_counts_once_and_not_when_it_has_ended() {
    let set =
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "a", "namespace": "shop" } });
    let mut leaving = pod("leaving", true);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut done = pod("done", false);
    done["status"]["phase"] = json!("Succeeded");
    let pods = [pod("one", true), pod("two", false), leaving, done];
    let summary = summarize(&[
        AssessedObject::new(&set, &pods),
        AssessedObject::new(&set, &pods[..1]),
        AssessedObject::new(&pod("own", true), &[]),
    ]);
    assert_eq!((summary.pods_ready, summary.pods_total), (2, 3));
}

#[test]
fn a_stack_of_many_objects_has_a_short_summary() {
    let objects: Vec<AssessedObject> =
        (0..500).map(|number| waits(&format!("a{number:03}"), &format!("Reason{number}"))).collect();
    let summary = summarize(&objects);
    assert_eq!(
        (summary.total, summary.resources.len(), summary.conditions.len()),
        (500, RESOURCES_MAX, CONDITIONS_MAX)
    );
}
