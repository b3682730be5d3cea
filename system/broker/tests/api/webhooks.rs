//! Webhook subscriptions, and deliveries that agents send.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Api, Fleet, TestResponse, text, webhooks};

const URL: &str = "https://hooks.example.com/very-secret?token=hidden";

fn request() -> Value {
    json!({"name": "hook", "url": URL, "auth_header": "Bearer hidden", "event_types": ["stack.*"]})
}

async fn create(api: &Api, body: &Value) -> TestResponse {
    api.post(&api.admin, "/webhooks", body).await
}

#[tokio::test]
async fn a_subscription_returns_only_the_generated_secret_and_only_once() {
    let api = Api::new().await;
    let created = create(&api, &request()).await.expect_status(201);
    assert!(created.header("x-sindri-signing-secret").starts_with("whsec_"));
    let shown = created.json();
    let expected = json!({
        "id": shown["id"], "name": "hook", "has_url": true, "has_auth_header": true, "event_types": ["stack.*"],
        "filters": null, "target_labels": null, "enabled": true, "max_retries": 5, "timeout_seconds": 30, "created_by": "admin",
        "created_at": shown["created_at"], "updated_at": shown["updated_at"],
    });
    assert_eq!(shown, expected);
    let path = format!("/webhooks/{}", text(&shown["id"]));
    for response in [api.get(&api.admin, &path).await, api.get(&api.admin, "/webhooks").await] {
        assert!(response.headers.get("x-sindri-signing-secret").is_none());
        assert!(!String::from_utf8_lossy(&response.expect_status(200).body).contains("hidden"));
    }
    let mut given = request();
    given["name"] = json!("given");
    given["signing_secret"] = json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    assert!(create(&api, &given).await.expect_status(201).headers.get("x-sindri-signing-secret").is_none());
}

#[tokio::test]
async fn a_subscription_has_the_name_of_the_administrator_who_created_it() {
    let api = Api::new().await;
    let anna = api.create_admin("anna", "admin").await;
    let created = api.post(&anna.1, "/webhooks", &request()).await.expect_status(201).json();
    assert_eq!(created["created_by"], "anna");
    let shown = api.get(&api.admin, &format!("/webhooks/{}", text(&created["id"]))).await.expect_status(200).json();
    assert_eq!(shown["created_by"], "anna");
}

#[tokio::test]
async fn an_invalid_subscription_is_rejected_without_repeating_a_secret() {
    let fleet = Fleet::new().await;
    let (api, unknown) = (&fleet.api, "00000000-0000-4000-8000-000000000000");
    create(api, &json!({"name": "there", "url": URL, "event_types": ["*"]})).await.expect_status(201);
    let before = api.count_audit_entries().await;
    for (field, value, status, code) in [
        ("name", json!(""), 400, "invalid_webhook"),
        ("url", json!(""), 400, "url_required"),
        ("url", json!("ftp://hooks.example.com/hidden"), 400, "invalid_url_scheme"),
        ("url", json!("http://hooks.example.com/hidden"), 400, "invalid_webhook"),
        ("url", json!("https://127.0.0.1/hidden"), 400, "invalid_webhook"),
        ("url", json!("https://user:hidden@hooks.example.com/"), 400, "invalid_webhook"),
        ("event_types", json!([]), 400, "invalid_webhook"),
        ("event_types", json!(["stack.exploded"]), 400, "invalid_webhook"),
        ("max_retries", json!(21), 400, "invalid_webhook"),
        ("max_retries", json!(-1), 400, "invalid_webhook"),
        ("timeout_seconds", json!(0), 400, "invalid_webhook"),
        ("timeout_seconds", json!(61), 400, "invalid_webhook"),
        ("auth_header", json!("hidden\r\nHost: x"), 400, "invalid_webhook"),
        ("auth_header", json!("h".repeat(4097)), 400, "invalid_webhook"),
        ("target_labels", json!(vec!["a"; 101]), 400, "invalid_webhook"),
        ("target_labels", json!(["a b"]), 400, "invalid_webhook"),
        ("signing_secret", json!("hidden"), 400, "invalid_webhook"),
        ("filters", json!({"agent_id": unknown}), 422, "foreign_key_violation"),
        ("filters", json!({"stack_id": unknown}), 422, "foreign_key_violation"),
    ] {
        let mut body = request();
        body[field] = value.clone();
        let response = create(api, &body).await;
        assert!(!String::from_utf8_lossy(&response.body).contains("hidden"), "{field} {value}");
        assert_eq!(response.expect_error(status), code, "{field} {value}");
    }
    assert_eq!(api.count_audit_entries().await, before);
}

#[tokio::test]
async fn a_subscription_is_updated_by_fields() {
    let api = Api::new().await;
    let path = format!("/webhooks/{}", text(&create(&api, &request()).await.expect_status(201).json()["id"]));
    let change = async |body: Value| api.put(&api.admin, &path, &body).await;
    let changed =
        change(json!({"enabled": false, "target_labels": ["a"], "max_retries": 0})).await.expect_status(200).json();
    assert_eq!(changed["enabled"], false);
    assert_eq!((&changed["target_labels"], &changed["max_retries"]), (&json!(["a"]), &json!(0)));
    assert_eq!((&changed["name"], &changed["has_auth_header"]), (&json!("hook"), &json!(true)));
    let changed = change(json!({"auth_header": "", "target_labels": []})).await.expect_status(200).json();
    assert_eq!((&changed["has_auth_header"], &changed["target_labels"]), (&json!(false), &Value::Null));
    assert_eq!(api.get(&api.admin, &path).await.json(), changed);
    assert_eq!(change(json!({"url": "ftp://x/"})).await.expect_error(400), "invalid_url_scheme");
    assert_eq!(change(json!({"event_types": ["x"]})).await.expect_error(400), "invalid_webhook");
    api.create_webhook("shared", &[]).await;
    change(json!({"name": "shared"})).await.expect_status(200);
    assert_eq!(api.get(&api.admin, "/webhooks").await.json().as_array().unwrap().len(), 2);
    api.delete(&path).await.expect_status(204);
    assert_eq!(change(json!({})).await.expect_error(404), "webhook_not_found");
}

#[tokio::test]
async fn without_an_encryption_key_subscriptions_are_rejected_with_the_missing_setting() {
    let api = Api::without_waiting(None).await;
    let response = create(&api, &request()).await;
    assert!(String::from_utf8_lossy(&response.body).contains("webhooks.encryption_key_file"));
    assert_eq!(response.expect_error(503), "webhooks_not_configured");
    assert_eq!(api.get(&api.admin, "/webhooks").await.expect_status(200).json(), json!([]));
    let configured = Api::without_waiting(Some(webhooks())).await;
    create(&configured, &request()).await.expect_status(201);
}

#[tokio::test]
async fn event_types_are_listed() {
    let api = Api::new().await;
    let types = api.get(&api.admin, "/webhooks/event-types").await.expect_status(200).json();
    assert!(types.as_array().unwrap().contains(&json!("deployment.failed")));
}

#[tokio::test]
async fn only_events_that_match_the_filters_are_delivered() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let mut body = request();
    body["event_types"] = json!(["deployment.created"]);
    body["filters"] = json!({"stack_id": fleet.stack});
    let webhook = text(&create(api, &body).await.expect_status(201).json()["id"]);
    let other = api.create_stack("other", &fleet.generator.0).await;
    api.submit(&other, false).await;
    api.submit(&fleet.stack, false).await;
    let path = format!("/webhooks/{webhook}/deliveries");
    let deliveries = api.get(&api.admin, &path).await.expect_status(200).json();
    assert_eq!(deliveries.as_array().unwrap().len(), 1, "{deliveries}");
    assert_eq!(deliveries[0]["payload"]["data"]["stack_id"], json!(fleet.stack));
    let count = async |status: &str| {
        api.get(&api.admin, &format!("{path}?status={status}"))
            .await
            .expect_status(200)
            .json()
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((count("pending").await, count("dead").await), (1, 0));
    assert_eq!(api.get(&api.admin, &format!("{path}?status=lost")).await.expect_error(400), "invalid_query");
    assert_eq!(api.get(&api.admin, &format!("{path}?offset=-1")).await.expect_error(400), "invalid_query");
}

/// Returns a fleet whose agent has a label and delivers the messages of a subscription.
async fn with_message(retries: i64) -> (Fleet, String) {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let label = json!({"agent_id": fleet.agent.0, "label": "edge"});
    api.post(&api.admin, &format!("/agents/{}/labels", fleet.agent.0), &label).await.expect_status(201);
    let mut body = request();
    body["target_labels"] = json!(["edge"]);
    body["max_retries"] = json!(retries);
    let webhook = text(&create(api, &body).await.expect_status(201).json()["id"]);
    let test = api.post(&api.admin, &format!("/webhooks/{webhook}/test"), &json!({})).await.expect_status(200).json();
    assert!(test["delivery_id"].is_string());
    (fleet, webhook)
}

async fn pending(fleet: &Fleet) -> Vec<Value> {
    let path = format!("/agents/{}/webhooks/pending", fleet.agent.0);
    fleet.api.get(&fleet.agent.1, &path).await.expect_status(200).json().as_array().unwrap().clone()
}

async fn result(fleet: &Fleet, delivery: &Value, body: Value) -> TestResponse {
    let path = format!("/webhook-deliveries/{}/result", text(&delivery["id"]));
    fleet.api.call(&fleet.agent.1, Method::POST, &path, Some(&body)).await
}

#[tokio::test]
async fn an_agent_acquires_a_delivery_once_with_everything_to_send_it() {
    let (fleet, webhook) = with_message(1).await;
    let taken = pending(&fleet).await;
    assert_eq!(taken.len(), 1);
    let message = &taken[0];
    assert_eq!((&message["url"], &message["auth_header"]), (&json!(URL), &json!("Bearer hidden")));
    assert_eq!((&message["subscription_id"], &message["attempts"]), (&json!(webhook), &json!(0)));
    let payload: Value = serde_json::from_str(message["payload"].as_str().unwrap()).unwrap();
    assert_eq!(payload["data"]["test"], true);
    assert!(pending(&fleet).await.is_empty(), "it is taken");
    assert_eq!(
        result(&fleet, message, json!({"success": true, "status_code": 200})).await.expect_status(200).json(),
        json!({})
    );
    let again = result(&fleet, message, json!({"success": true})).await;
    assert_eq!(again.expect_error(404), "delivery_not_found");
    let path = format!("/webhooks/{webhook}/deliveries");
    let delivery = fleet.api.get(&fleet.api.admin, &path).await.json()[0].clone();
    assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("success"), &json!(1)));
}

#[tokio::test]
async fn a_failed_delivery_is_retried_later_or_dead() {
    for (retries, status) in [(1, "failed"), (0, "dead")] {
        let (fleet, webhook) = with_message(retries).await;
        let taken = pending(&fleet).await;
        result(&fleet, &taken[0], json!({"success": false, "status_code": 500})).await.expect_status(200);
        let path = format!("/webhooks/{webhook}/deliveries");
        let delivery = fleet.api.get(&fleet.api.admin, &path).await.json()[0].clone();
        assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!(status), &json!(1)));
        assert_eq!(delivery["last_error"], "the receiver responded with status 500");
        assert_eq!(!delivery["next_retry_at"].is_null(), retries > 0);
    }
}
