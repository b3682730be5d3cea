//! Approvals of plans that agents hold.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{Fleet, TestResponse, text};

/// Returns a fleet whose agent has received a revision.
async fn fleet_with_received_revision() -> (Fleet, Value) {
    let fleet = Fleet::new().await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    (fleet, revision)
}

fn approval_request(revision: &Value, digit: &str) -> Value {
    json!({"deployment_object_id": revision["id"], "digest": digit.repeat(64), "reasons": ["r"], "plan": "- delete x"})
}

async fn request_approval(fleet: &Fleet, body: &Value) -> TestResponse {
    fleet.api.put(&fleet.agent.1, &format!("/agents/{}/stacks/{}/approval", fleet.agent.0, fleet.stack), body).await
}

async fn decide(fleet: &Fleet, key: &str, approval: &Value, decision: &str) -> TestResponse {
    fleet.api.post(key, &format!("/approvals/{}/{decision}", text(&approval["id"])), &json!({})).await
}

async fn poll(fleet: &Fleet, etag: &str) -> TestResponse {
    let request = Request::get(format!("/api/v1/agents/{}/target-state", fleet.agent.0))
        .header("authorization", &fleet.agent.1)
        .header("if-none-match", etag);
    fleet.api.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_pending_plan_is_approved_and_the_etag_changes() {
    let (fleet, revision) = fleet_with_received_revision().await;
    let etag = poll(&fleet, "").await.expect_status(200).header("etag").to_owned();
    let pending = request_approval(&fleet, &approval_request(&revision, "a")).await.expect_status(200).json();
    assert_eq!(
        (&pending["state"], &pending["plan"], &pending["agent_id"]),
        (&json!("pending"), &json!("- delete x"), &json!(fleet.agent.0))
    );
    assert_eq!(pending["decided_by"], Value::Null);
    poll(&fleet, &etag).await.expect_status(304);
    let approved = decide(&fleet, &fleet.generator.1, &pending, "approve").await.expect_status(200).json();
    assert_eq!(approved["state"], "approved");
    assert_eq!(text(&approved["decided_by"]), format!("generator {}", fleet.generator.0));
    let again = poll(&fleet, &etag).await.expect_status(200);
    assert_eq!(again.json()[0]["id"], revision["id"], "the target state is the same");
    poll(&fleet, again.header("etag")).await.expect_status(304);
    assert_eq!(request_approval(&fleet, &approval_request(&revision, "a")).await.expect_status(200).json(), approved);
    let before = fleet.api.count_audit_entries().await;
    assert_eq!(decide(&fleet, &fleet.api.admin, &pending, "approve").await.expect_status(200).json(), approved);
    assert_eq!(decide(&fleet, &fleet.api.admin, &pending, "reject").await.expect_error(409), "approval_decided");
    assert_eq!(fleet.api.count_audit_entries().await, before);
}

#[tokio::test]
async fn approvals_are_listed_by_state_and_only_to_their_owner() {
    let (fleet, revision) = fleet_with_received_revision().await;
    let (api, other) = (&fleet.api, fleet.api.create_generator("other").await);
    let first = request_approval(&fleet, &approval_request(&revision, "a")).await.expect_status(200).json();
    let second = request_approval(&fleet, &approval_request(&revision, "b")).await.expect_status(200).json();
    let ids = async |key: &str, path: &str| {
        let mut ids: Vec<_> = api
            .get(key, path)
            .await
            .expect_status(200)
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(&one["id"]))
            .collect();
        ids.sort();
        ids
    };
    let mut both = vec![text(&first["id"]), text(&second["id"])];
    both.sort();
    for key in [&api.admin, &fleet.generator.1] {
        assert_eq!(ids(key, "/approvals").await, both);
        assert_eq!(ids(key, "/approvals?state=pending").await, [text(&second["id"])]);
        assert_eq!(ids(key, "/approvals?state=superseded").await, [text(&first["id"])]);
    }
    assert_eq!(ids(&other.1, "/approvals").await, Vec::<String>::new());
    assert_eq!(api.get(&api.admin, "/approvals?state=lost").await.expect_error(400), "invalid_query");
    assert_eq!(decide(&fleet, &other.1, &second, "approve").await.expect_error(404), "approval_not_found");
    assert_eq!(decide(&fleet, &api.admin, &first, "approve").await.expect_error(409), "approval_decided");
    let path = format!("/approvals/{}", text(&second["id"]));
    assert_eq!(api.get(&fleet.generator.1, &path).await.expect_status(200).json(), second);
}

#[tokio::test]
async fn a_request_beyond_its_limits_is_rejected() {
    let (fleet, revision) = fleet_with_received_revision().await;
    let good = approval_request(&revision, "a");
    let before = fleet.api.count_audit_entries().await;
    for (field, value) in [
        ("digest", json!("a".repeat(63))),
        ("digest", json!("A".repeat(64))),
        ("digest", json!("g".repeat(64))),
        ("reasons", json!(vec!["r"; 33])),
        ("reasons", json!(["r".repeat(1_025)])),
        ("plan", json!("p".repeat(64 * 1_024 + 1))),
        ("plan", json!("- delete x\u{1b}[8m")),
        ("reasons", json!(["r\u{9b}2K"])),
    ] {
        let mut body = good.clone();
        body[field] = value;
        assert_eq!(request_approval(&fleet, &body).await.expect_error(400), "invalid_approval", "{field}");
    }
    assert_eq!(fleet.api.count_audit_entries().await, before);
    let mut most = good;
    (most["reasons"], most["plan"]) = (json!(vec!["ü".repeat(1_024); 32]), json!("p".repeat(64 * 1_024)));
    request_approval(&fleet, &most).await.expect_status(200);
}
