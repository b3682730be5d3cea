//! Tokens of service accounts: lifetime, audiences, and reviews.

use serde_json::{Value, json};
use sindri_apiserver::Credentials;

use crate::harness::*;

const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.server = machine.server.clone().with_administrator("the-token");
    machine
}

/// Sends a request with a token.
fn send(machine: &mut Machine, token: &str, target: &str, body: &Value) -> TestResponse {
    let method = if body.is_null() { http::Method::GET } else { http::Method::POST };
    let mut request = machine.request(method, target, "application/json", body);
    request.headers.authorization = Credentials(format!("Bearer {token}"));
    machine.send(&request)
}

fn issue(machine: &mut Machine, spec: &Value) -> String {
    let issued = send(machine, "the-token", TOKENS, &json!({ "spec": spec }));
    assert_eq!(issued.status, 201, "{}", issued.body);
    issued.body["status"]["token"].as_str().expect("a token").to_owned()
}

fn review(machine: &mut Machine, spec: &Value) -> Value {
    send(machine, "the-token", REVIEWS, &json!({ "spec": spec })).body["status"].clone()
}

#[test]
fn a_token_expires() {
    let mut machine = machine();
    let token = issue(&mut machine, &json!({"expirationSeconds": 600}));
    assert_eq!(send(&mut machine, &token, "/version", &Value::Null).status, 200);
    assert_eq!(review(&mut machine, &json!({ "token": token }))["authenticated"], true);
    machine.advance(601_000);
    assert_eq!(send(&mut machine, &token, "/version", &Value::Null).status, 401);
    assert_eq!(review(&mut machine, &json!({ "token": token }))["error"], "invalid bearer token");
    let short = json!({"spec": {"expirationSeconds": 60}});
    assert_eq!(send(&mut machine, "the-token", TOKENS, &short).status, 422);
}

#[test]
fn a_token_is_for_its_audiences() {
    let mut machine = machine();
    let token = issue(&mut machine, &json!({"audiences": ["vault"]}));
    assert_eq!(send(&mut machine, &token, "/version", &Value::Null).status, 401);
    let reviewed = review(&mut machine, &json!({"token": token, "audiences": ["vault", "other"]}));
    assert_eq!((&reviewed["authenticated"], &reviewed["audiences"]), (&json!(true), &json!(["vault"])));
    assert!(review(&mut machine, &json!({"token": token, "audiences": ["other"]}))["authenticated"].is_null());
}

#[test]
fn a_review_names_the_groups_and_needs_the_account() {
    let mut machine = machine();
    let token = issue(&mut machine, &json!({}));
    let user = review(&mut machine, &json!({ "token": token }))["user"].clone();
    let groups = json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    assert_eq!((&user["username"], &user["groups"]), (&json!("system:serviceaccount:default:default"), &groups));
    assert_eq!(review(&mut machine, &json!({"token": "the-token"}))["authenticated"], true);
    let mut request =
        machine.request(http::Method::DELETE, "/api/v1/namespaces/default/serviceaccounts/default", "", &Value::Null);
    request.headers.authorization = Credentials("Bearer the-token".to_owned());
    assert_eq!(machine.send(&request).status, 200);
    assert!(review(&mut machine, &json!({ "token": token }))["authenticated"].is_null());
}
