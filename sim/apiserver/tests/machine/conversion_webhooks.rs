//! Conversion webhooks of CRDs, with a function that answers their calls.

use http::Method;
use serde_json::{Value, json};
use sindri_apiserver::{Response, WebhookAnswer, WebhookAnswers, WebhookCall, WebhookReply};

use crate::harness::{Machine, TestResponse};

const V1: &str = "/apis/example.io/v1/namespaces/default/boards";
const V2: &str = "/apis/example.io/v2/namespaces/default/boards";

/// A CRD whose field is `size` in v1, which is stored, and `width` in v2.
fn board_crd() -> Value {
    let version = |name: &str, field: &str, storage: bool| {
        let spec = json!({"type": "object", "properties": {field: {"type": "string"}}});
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boards.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": {"plural": "boards", "kind": "Board"},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://hooks.test/convert"},
            }},
            "versions": [version("v1", "size", true), version("v2", "width", false)],
        },
    })
}

fn machine() -> Machine {
    let mut machine = Machine::new();
    let created = machine.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &board_crd());
    assert_eq!(created.status, 201, "{:?}", created.body);
    machine.advance(5_000);
    machine
}

fn board(version: &str, name: &str, field: &str) -> Value {
    json!({"apiVersion": format!("example.io/{version}"), "kind": "Board", "metadata": {"name": name}, "spec": {field: name}})
}

fn reply(review: &Value, response: Value) -> WebhookAnswer {
    let mut response = response;
    response["uid"] = review["request"]["uid"].clone();
    let review = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
    Ok(WebhookReply { status: 200, content_type: "application/json".to_owned(), body: review.to_string().into() })
}

/// Renames the field.
fn convert(call: &WebhookCall) -> WebhookAnswer {
    assert_eq!(call.url, "https://hooks.test/convert?timeout=30s");
    let review: Value = serde_json::from_slice(&call.body).expect("a review");
    let to = review["request"]["desiredAPIVersion"].as_str().expect("a version").to_owned();
    let (old, new) = if to == "example.io/v2" { ("size", "width") } else { ("width", "size") };
    let objects = review["request"]["objects"].as_array().expect("objects").iter().map(|object| {
        assert_eq!(object["metadata"].get("resourceVersion"), None);
        let mut converted = object.clone();
        converted["apiVersion"] = json!(to);
        converted["spec"] = json!({ new: object["spec"][old] });
        converted
    });
    let objects: Vec<Value> = objects.collect();
    reply(&review, json!({"result": {"status": "Success"}, "convertedObjects": objects}))
}

fn send(
    machine: &mut Machine,
    method: Method,
    target: &str,
    body: &Value,
    answer: impl FnMut(&WebhookCall) -> WebhookAnswer,
) -> TestResponse {
    let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = machine.request(method, target, content_type, body);
    match machine.server.handle_with(machine.now, &request, None, answer) {
        Response::Full { status, body, .. } => {
            TestResponse { status, body: serde_json::from_slice(&body).expect("JSON") }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn objects_are_converted_when_they_are_written_and_read() {
    let mut machine = machine();
    let created = send(&mut machine, Method::POST, V1, &board("v1", "one", "size"), |_| panic!("called"));
    assert_eq!((created.status, &created.body["spec"]), (201, &json!({"size": "one"})));
    let created = send(&mut machine, Method::POST, V2, &board("v2", "two", "width"), convert);
    assert_eq!((created.status, &created.body["spec"]), (201, &json!({"width": "two"})), "{:?}", created.body);
    let stored = machine.server.get("example.io", "boards", Some("default"), "two").expect("it is stored").clone();
    assert_eq!((&stored["apiVersion"], &stored["spec"]), (&json!("example.io/v1"), &json!({"size": "two"})));
    let read = send(&mut machine, Method::GET, &format!("{V2}/one"), &Value::Null, convert);
    assert_eq!((&read.body["apiVersion"], &read.body["spec"]), (&json!("example.io/v2"), &json!({"width": "one"})));
    let patched = send(&mut machine, Method::PATCH, &format!("{V2}/one"), &json!({"spec": {"width": "x"}}), convert);
    assert_eq!((patched.status, &patched.body["spec"]), (200, &json!({"width": "x"})), "{:?}", patched.body);
    let listed = send(&mut machine, Method::GET, V2, &Value::Null, convert);
    let specs: Vec<&Value> = listed.body["items"].as_array().expect("items").iter().map(|item| &item["spec"]).collect();
    assert_eq!(specs, [&json!({"width": "x"}), &json!({"width": "two"})]);
    let again = send(&mut machine, Method::GET, V2, &Value::Null, |_| panic!("what is known is not converted again"));
    assert_eq!(again.body["items"], listed.body["items"]);
    assert_eq!(
        send(&mut machine, Method::GET, &format!("{V1}/one"), &Value::Null, |_| panic!("called")).body["spec"]["size"],
        "x"
    );
}

#[test]
fn failed_conversions_change_nothing_and_have_the_messages_of_the_real_server() {
    let mut machine = machine();
    let whole = "conversion webhook for example.io/v2, Kind=Board";
    let unanswered = "Post \"https://hooks.test/convert?timeout=30s\": context deadline exceeded";
    let cases: [(Result<Value, String>, String); 4] = [
        (Err("context deadline exceeded".to_owned()), format!("{whole} failed: {unanswered}")),
        (
            Ok(json!({"result": {"status": "Failure", "message": "cannot do it"}})),
            format!("{whole} failed: cannot do it"),
        ),
        (
            Ok(json!({"result": {"status": "Failed"}})),
            format!("{whole} failed: response.result.status was 'Failed', not 'Success'"),
        ),
        (Ok(json!({"result": {"status": "Success"}})), format!("{whole} returned 0 objects, expected 1")),
    ];
    for (answer, message) in cases {
        let failed = send(&mut machine, Method::POST, V2, &board("v2", "two", "width"), |call| {
            let review: Value = serde_json::from_slice(&call.body).expect("a review");
            reply(&review, answer.clone()?)
        });
        assert_eq!(failed.failure(), (500, "", message.as_str()));
    }
    assert!(machine.server.get("example.io", "boards", Some("default"), "two").is_none());
}

#[test]
fn events_of_a_watch_are_converted() {
    let mut machine = machine();
    let request = machine.request(Method::GET, &format!("{V2}?watch=true"), "", &Value::Null);
    let Response::Watch(watch) = machine.server.handle(machine.now, &request, None) else { panic!("no watch") };
    let created = machine.post(V1, &board("v1", "one", "size"));
    assert_eq!(created.status, 201);
    let mut answers = WebhookAnswers::default();
    let calls = machine.server.watch_calls(watch, &answers);
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    answers.add(call, convert(call));
    assert_eq!(machine.server.watch_calls(watch, &answers), []);
    let events = machine.server.watch_events(watch, machine.now);
    let event: Value = serde_json::from_slice(&events[0]).expect("an event");
    assert_eq!((&event["type"], &event["object"]["spec"]), (&json!("ADDED"), &json!({"width": "one"})));
}
