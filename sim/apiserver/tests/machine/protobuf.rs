//! The protobuf encoding, as used by Go clients.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Response, protobuf};

use crate::harness::{GADGETS, Machine, gadget};

/// `Accept` header of a Go client.
const GO_CLIENT_ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn get_as(machine: &mut Machine, target: &str, accept: &str) -> (u16, String, Bytes) {
    let mut request = machine.request(Method::GET, target, "", &Value::Null);
    accept.clone_into(&mut request.headers.accept);
    match machine.server.handle(machine.now, &request, None) {
        response @ Response::Full { .. } => {
            let media = response.header("content-type").unwrap_or_default().to_owned();
            let Response::Full { status, body, .. } = response else { unreachable!("matched above") };
            (status, media, body)
        }
        other => panic!("expected a complete response, got {other:?}"),
    }
}

#[test]
fn built_in_kinds_are_served_as_protobuf_and_custom_resources_as_json() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}});
    let created = machine.post(MAPS, &object);
    machine.post(GADGETS, &gadget("g", &json!({"size": 1})));

    let (status, media, body) = get_as(&mut machine, &format!("{MAPS}/one"), GO_CLIENT_ACCEPT);
    assert_eq!((status, media.as_str()), (200, protobuf::MEDIA));
    assert_eq!(protobuf::decode(&body), Ok(created.body));
    let (_, media, body) = get_as(&mut machine, MAPS, GO_CLIENT_ACCEPT);
    let list = protobuf::decode(&body).expect("a message");
    assert_eq!((media.as_str(), &list["kind"]), (protobuf::MEDIA, &json!("ConfigMapList")));

    let (_, media, _) = get_as(&mut machine, &format!("{GADGETS}/g"), GO_CLIENT_ACCEPT);
    assert_eq!(media, "application/json");
    let (status, media, _) = get_as(&mut machine, &format!("{GADGETS}/g"), protobuf::MEDIA);
    assert_eq!((status, media.as_str()), (406, protobuf::MEDIA));
}

#[test]
fn a_protobuf_body_is_stored_and_a_truncated_one_is_rejected() {
    let mut machine = Machine::new();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}});
    let encoded = protobuf::encode(&object).expect("a built-in kind");
    let mut request = machine.request(Method::POST, MAPS, "", &Value::Null);
    request = request.with_body(protobuf::MEDIA, encoded.clone());
    let created = machine.send(&request);
    assert_eq!((created.status, &created.body["data"]), (201, &json!({"a": "1"})));
    let refused = machine.send(&request.with_body(protobuf::MEDIA, encoded.slice(..encoded.len() - 6)));
    let (status, reason, message) = refused.failure();
    assert_eq!((status, reason), (400, "BadRequest"));
    assert!(message.contains("unexpected EOF"), "{message}");
}

#[test]
fn watch_events_are_sent_as_protobuf() {
    let mut machine = Machine::new();
    let mut request = machine.request(Method::GET, &format!("{MAPS}?watch=true"), "", &Value::Null);
    GO_CLIENT_ACCEPT.clone_into(&mut request.headers.accept);
    let Response::Watch(watch) = machine.server.handle(machine.now, &request, None) else { panic!("no watch") };
    let headers = machine.server.watch_headers(watch);
    assert_eq!(headers[0], ("content-type", "application/vnd.kubernetes.protobuf;stream=watch".to_owned()));
    machine.server.watch_events(watch, machine.now);
    machine.post(MAPS, &json!({"metadata": {"name": "one"}}));
    let frames = machine.server.watch_events(watch, machine.now);
    let event = protobuf::decode_event(&frames[0][4..]).expect("a message");
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("one")));
}

#[test]
fn an_autoscaler_and_an_event_are_served_in_all_their_api_versions() {
    let mut machine = Machine::new();
    let path = |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 70, "scaleTargetRef": target});
    machine.post(&path("v1"), &json!({"metadata": {"name": "one"}, "spec": spec}));
    let newer = machine.get(&format!("{}/one", path("v2"))).body;
    assert_eq!(newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    assert_eq!(newer["metadata"]["managedFields"][0]["apiVersion"], "autoscaling/v1");

    let about = json!({"kind": "Pod", "name": "web", "namespace": "default"});
    let event = json!({"metadata": {"name": "one"}, "involvedObject": about, "message": "it started"});
    machine.post("/api/v1/namespaces/default/events", &event);
    let other = machine.get("/apis/events.k8s.io/v1/namespaces/default/events/one").body;
    assert_eq!((&other["note"], &other["regarding"]), (&json!("it started"), &about));
    machine.delete("/apis/events.k8s.io/v1/namespaces/default/events/one");
    assert_eq!(machine.get("/api/v1/namespaces/default/events/one").status, 404);
}
