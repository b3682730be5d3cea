//! Selectors of an object's pods, and the explanations that pods give.

use serde_json::{Value, json};
use sindri_health::{HealthState, assess, explain, pod_selector};

fn deployment(selector: Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "shop", "generation": 1 },
        "spec": { "replicas": 3, "selector": selector },
        "status": { "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 1 },
    })
}

fn waiting_pod(name: &str, reason: &str) -> Value {
    let status =
        json!({ "name": "web", "restartCount": 2, "state": { "waiting": { "reason": reason, "message": "words" } } });
    json!({ "metadata": { "name": name, "namespace": "shop" }, "status": { "phase": "Running", "containerStatuses": [status] } })
}

fn format_selector(selector: Value) -> Option<String> {
    pod_selector(&deployment(selector)).map(|pods| pods.labels)
}

#[test]
fn labels_and_expressions_become_one_query() {
    let selector = pod_selector(&deployment(json!({
        "matchLabels": { "tier": "front", "app.kubernetes.io/name": "web" },
        "matchExpressions": [
            { "key": "track", "operator": "In", "values": ["stable", "canary"] },
            { "key": "zone", "operator": "NotIn", "values": ["a"] },
            { "key": "owner", "operator": "Exists" },
            { "key": "old", "operator": "DoesNotExist" },
        ],
    })))
    .expect("a Deployment has pods");
    assert_eq!(selector.namespace, "shop");
    assert_eq!(
        selector.labels,
        "app.kubernetes.io/name=web,tier=front,track in (stable,canary),zone notin (a),owner,!old"
    );
}

#[test]
fn an_invalid_selector_selects_nothing() {
    for invalid in [
        json!({}),
        json!(null),
        json!({ "matchLabels": {} }),
        json!({ "matchLabels": { "a": 1 } }),
        json!({ "matchLabels": { "a": "b,c=d" } }),
        json!({ "matchLabels": { "a": "b" }, "matchExpressions": [{ "key": "c", "operator": "Near" }] }),
        json!({ "matchLabels": { "a": "b" }, "matchExpressions": ["c"] }),
    ] {
        assert_eq!(format_selector(invalid.clone()), None, "{invalid}");
    }
}

#[test]
fn only_kinds_with_pods_have_a_selector() {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a", "namespace": "b" }, "spec": { "selector": { "a": "b" } } });
    assert_eq!(pod_selector(&service), None);
    let controller = json!({ "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "a", "namespace": "b" }, "spec": { "selector": { "a": "b" } } });
    assert_eq!(pod_selector(&controller).map(|pods| pods.labels).as_deref(), Some("a=b"));
}

#[test]
fn the_worst_pod_explains_and_among_equal_ones_the_first_by_name() {
    let object = deployment(json!({ "matchLabels": { "app": "web" } }));
    let pods = [
        waiting_pod("web-d", "ContainerCreating"),
        waiting_pod("web-c", "CrashLoopBackOff"),
        waiting_pod("web-b", "ImagePullBackOff"),
        waiting_pod("web-a", "CrashLoopBackOff"),
    ];
    let health = explain(assess(&object), &pods);
    assert_eq!((health.state, health.reason.as_str()), (HealthState::Progressing, "CrashLoopBackOff"));
    let expected = "1 of 3 replicas are available; pod web-a (and 2 more pods): container web: CrashLoopBackOff, 2 restarts: words";
    assert_eq!(health.message, expected);
    let mut reversed = pods;
    reversed.reverse();
    assert_eq!(explain(assess(&object), &reversed), health);
}

#[test]
fn starting_terminating_and_succeeded_pods_explain_nothing() {
    let object = deployment(json!({ "matchLabels": { "app": "web" } }));
    let mut terminating = waiting_pod("web-b", "CrashLoopBackOff");
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let done = json!({ "metadata": { "name": "web-c" }, "status": { "phase": "Succeeded" } });
    let pods = [waiting_pod("web-a", "ContainerCreating"), terminating, done, json!(null), json!({})];
    assert_eq!(explain(assess(&object), &pods), assess(&object));
}

#[test]
fn an_evicted_pod_does_not_hide_a_current_problem() {
    let evicted = json!({ "metadata": { "name": "web-a" }, "status": { "phase": "Failed", "reason": "Evicted", "message": "low on memory" } });
    let object = deployment(json!({ "matchLabels": { "app": "web" } }));
    let health = explain(assess(&object), &[evicted.clone(), waiting_pod("web-b", "ImagePullBackOff")]);
    assert_eq!(health.reason, "ImagePullBackOff");
    assert_eq!(explain(assess(&object), &[evicted]).reason, "Evicted");
}

#[test]
fn pods_do_not_explain_a_ready_object() {
    let mut object = deployment(json!({ "matchLabels": { "app": "web" } }));
    object["status"]["availableReplicas"] = json!(3);
    let health = explain(assess(&object), &[waiting_pod("web-a", "CrashLoopBackOff")]);
    assert_eq!((health.state, health.reason.as_str()), (HealthState::Ready, "Available"));
}
