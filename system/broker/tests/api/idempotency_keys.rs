//! The header `Idempotency-Key` on operations that have no use for it: clients send it with every request.

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::{Fleet, TestResponse, text};

async fn send(fleet: &Fleet, key: &str, method: Method, path: &str, body: &Value) -> TestResponse {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header("authorization", key)
        .header("idempotency-key", "k1")
        .body(Body::from(body.to_string()))
        .unwrap();
    fleet.api.send(request).await
}

#[tokio::test]
async fn operations_that_a_repetition_does_not_change_ignore_an_idempotency_key() {
    let fleet = Fleet::new().await;
    let (generator, agent, stack) = (&fleet.generator.0, &fleet.agent.0, &fleet.stack);
    let webhook = fleet.api.create_webhook("w", &[]).await;
    let revision = fleet.api.submit(stack, false).await;
    fleet.poll().await;
    let of_stack = |key: &str| json!({"stack_id": stack, "key": key, "value": "v"});
    let of_agent = |key: &str| json!({"agent_id": agent, "key": key, "value": "v"});
    let status = json!({"deployment_object_id": revision["id"], "conditions": []});
    let held = json!({"deployment_object_id": revision["id"], "digest": "a".repeat(64), "reasons": [], "plan": ""});
    let (admin, own) = (&fleet.api.admin, &fleet.agent.1);
    let nothing = Value::Null;
    for (key, method, path, body, first, second) in [
        (admin, Method::PUT, format!("/stacks/{stack}"), json!({"description": "d"}), 200, 200),
        (admin, Method::PUT, format!("/agents/{agent}"), json!({"name": "west"}), 200, 200),
        (admin, Method::PUT, format!("/generators/{generator}"), json!({"description": "d"}), 200, 200),
        (admin, Method::PUT, format!("/webhooks/{webhook}"), json!({"name": "v"}), 200, 200),
        (admin, Method::PUT, format!("/stacks/{stack}/annotations/a"), json!({"value": "v"}), 200, 200),
        (own, Method::PUT, format!("/agents/{agent}/stacks/{stack}/status"), status, 204, 204),
        (own, Method::PUT, format!("/agents/{agent}/stacks/{stack}/approval"), held, 200, 200),
        (own, Method::PATCH, format!("/agents/{agent}/health-status"), json!({"deployment_objects": []}), 200, 200),
        // An entry that exists is not added again.
        (admin, Method::POST, format!("/stacks/{stack}/labels"), json!("l"), 201, 409),
        (admin, Method::POST, format!("/agents/{agent}/labels"), json!({"agent_id": agent, "label": "l"}), 201, 409),
        (admin, Method::POST, format!("/stacks/{stack}/annotations"), of_stack("b"), 201, 409),
        (admin, Method::POST, format!("/agents/{agent}/annotations"), of_agent("b"), 201, 409),
        (admin, Method::POST, "/admin/config/reload".to_owned(), json!({}), 200, 200),
        (admin, Method::DELETE, format!("/webhooks/{webhook}"), nothing.clone(), 204, 404),
        (admin, Method::DELETE, format!("/stacks/{stack}"), nothing, 204, 404),
    ] {
        assert_eq!(send(&fleet, key, method.clone(), &path, &body).await.status.as_u16(), first, "{method} {path}");
        assert_eq!(send(&fleet, key, method.clone(), &path, &body).await.status.as_u16(), second, "{method} {path}");
    }
}

#[tokio::test]
async fn a_decision_with_an_idempotency_key_is_repeated_without_effect() {
    let fleet = Fleet::new().await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    let held = json!({"deployment_object_id": revision["id"], "digest": "a".repeat(64), "reasons": [], "plan": ""});
    let path = format!("/agents/{}/stacks/{}/approval", fleet.agent.0, fleet.stack);
    let approval = fleet.api.put(&fleet.agent.1, &path, &held).await.expect_status(200).json();
    let path = format!("/approvals/{}/approve", text(&approval["id"]));
    for _ in 0..2 {
        let decided = send(&fleet, &fleet.api.admin, Method::POST, &path, &json!({})).await.expect_status(200).json();
        assert_eq!(decided["state"], "approved");
    }
}

#[tokio::test]
async fn operations_that_a_repetition_would_carry_out_twice_refuse_an_idempotency_key() {
    let fleet = Fleet::new().await;
    let webhook = fleet.api.create_webhook("w", &[]).await;
    let other = fleet.api.create_admin("other", "admin").await.0;
    let entries = fleet.api.count_audit_entries().await;
    for path in [
        format!("/agents/{}/rotate-pak", fleet.agent.0),
        format!("/generators/{}/rotate-pak", fleet.generator.0),
        format!("/admins/{other}/rotate-pak"),
        "/admin/rotate-pak".to_owned(),
        format!("/webhooks/{webhook}/test"),
    ] {
        let refused = send(&fleet, &fleet.api.admin, Method::POST, &path, &json!({})).await;
        assert_eq!(refused.expect_error(400), "idempotency_key_unsupported", "{path}");
    }
    assert_eq!(fleet.api.count_audit_entries().await, entries, "nothing was carried out");
}
