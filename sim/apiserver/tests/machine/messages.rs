//! Protobuf: what programs written in Go send and get.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Response, protobuf};

use crate::harness::{GADGETS, Machine, gadget};

/// As programs ask.
const PROGRAMS: &str = "application/vnd.kubernetes.protobuf,application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn asked(machine: &mut Machine, target: &str, accept: &str) -> (u16, String, Bytes) {
    let mut request = machine.request(Method::GET, target, "", &Value::Null);
    accept.clone_into(&mut request.headers.accept);
    match machine.server.handle(machine.now, &request, None) {
        answer @ Response::Full { .. } => {
            let media = answer.header("content-type").unwrap_or_default().to_owned();
            let Response::Full { status, body, .. } = answer else { unreachable!("matched above") };
            (status, media, body)
        }
        other => panic!("expected a complete answer, got {other:?}"),
    }
}

#[test]
fn built_in_kinds_are_messages_and_instances_are_not() {
    let mut machine = Machine::new();
    machine.define_gadgets();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}});
    let made = machine.post(MAPS, &object);
    machine.post(GADGETS, &gadget("g", &json!({"size": 1})));

    let (status, media, body) = asked(&mut machine, &format!("{MAPS}/one"), PROGRAMS);
    assert_eq!((status, media.as_str()), (200, protobuf::MEDIA));
    assert_eq!(protobuf::read(&body), Ok(made.body));
    let (_, media, body) = asked(&mut machine, MAPS, PROGRAMS);
    let list = protobuf::read(&body).expect("a message");
    assert_eq!((media.as_str(), &list["kind"]), (protobuf::MEDIA, &json!("ConfigMapList")));

    let (_, media, _) = asked(&mut machine, &format!("{GADGETS}/g"), PROGRAMS);
    assert_eq!(media, "application/json");
    let (status, media, _) = asked(&mut machine, &format!("{GADGETS}/g"), protobuf::MEDIA);
    assert_eq!((status, media.as_str()), (406, protobuf::MEDIA));
}

#[test]
fn a_message_is_stored_as_json_would_be_and_a_broken_one_is_refused() {
    let mut machine = Machine::new();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}});
    let message = protobuf::write(&object).expect("a built-in kind");
    let mut request = machine.request(Method::POST, MAPS, "", &Value::Null);
    request = request.with_body(protobuf::MEDIA, message.clone());
    let made = machine.send(&request);
    assert_eq!((made.status, &made.body["data"]), (201, &json!({"a": "1"})));
    let refused = machine.send(&request.with_body(protobuf::MEDIA, message.slice(..message.len() - 6)));
    let (status, reason, why) = refused.failure();
    assert_eq!((status, reason), (400, "BadRequest"));
    assert!(why.contains("unexpected EOF"), "{why}");
}

#[test]
fn events_of_a_watch_are_messages_too() {
    let mut machine = Machine::new();
    let mut request = machine.request(Method::GET, &format!("{MAPS}?watch=true"), "", &Value::Null);
    PROGRAMS.clone_into(&mut request.headers.accept);
    let Response::Watch(watch) = machine.server.handle(machine.now, &request, None) else { panic!("no watch") };
    let headers = machine.server.watch_headers(watch);
    assert_eq!(headers, [("content-type", "application/vnd.kubernetes.protobuf;stream=watch".to_owned())]);
    machine.server.watch_events(watch, machine.now);
    machine.post(MAPS, &json!({"metadata": {"name": "one"}}));
    let frames = machine.server.watch_events(watch, machine.now);
    let event = protobuf::read_event(&frames[0][4..]).expect("a message");
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("one")));
}

#[test]
fn an_autoscaler_and_an_event_are_one_object_in_all_their_versions() {
    let mut machine = Machine::new();
    let place = |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 70, "scaleTargetRef": target});
    machine.post(&place("v1"), &json!({"metadata": {"name": "one"}, "spec": spec}));
    let newer = machine.get(&format!("{}/one", place("v2"))).body;
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
