//! Events and heartbeats of agents.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{Fleet, TestResponse, event, text};

async fn with_key(fleet: &Fleet, key: &str, body: &Value) -> TestResponse {
    let request = Request::post(format!("/api/v1/agents/{}/events", fleet.agent.0))
        .header("authorization", &fleet.agent.1)
        .header("idempotency-key", key)
        .body(Body::from(body.to_string()))
        .unwrap();
    fleet.api.send(request).await
}

async fn events(fleet: &Fleet) -> Vec<Value> {
    let path = format!("/agents/{}/events", fleet.agent.0);
    fleet.api.get(&fleet.agent.1, &path).await.expect_status(200).json().as_array().unwrap().clone()
}

#[tokio::test]
async fn an_event_with_the_same_idempotency_key_is_recorded_once_per_agent() {
    let fleet = Fleet::new().await;
    let revision = text(&fleet.api.submit(&fleet.stack, false).await["id"]);
    let body = event(&fleet.agent.0, &revision, "SUCCESS");
    let first = with_key(&fleet, "k1", &body).await.expect_status(201).json();
    assert_eq!(with_key(&fleet, "k1", &body).await.expect_status(201).json(), first);
    assert_ne!(with_key(&fleet, "k2", &body).await.expect_status(201).json(), first);
    assert_eq!(events(&fleet).await.len(), 2);
    let all = fleet.api.get(&fleet.api.admin, "/agent-events").await.expect_status(200).json();
    assert_eq!(all, json!(events(&fleet).await));
    let one = fleet.api.get(&fleet.api.admin, &format!("/agent-events/{}", text(&first["id"]))).await;
    assert_eq!(one.expect_status(200).json(), first);
}

#[tokio::test]
async fn without_an_idempotency_key_the_same_outcome_is_recorded_again() {
    let fleet = Fleet::new().await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    fleet.api.report(&fleet.agent, &revision, "FAILURE").await;
    fleet.api.report(&fleet.agent, &revision, "FAILURE").await;
    assert_eq!(events(&fleet).await.len(), 2);
}

#[tokio::test]
async fn an_event_about_an_unknown_revision_or_agent_is_rejected() {
    let fleet = Fleet::new().await;
    let (east, api) = (&fleet.agent, &fleet.api);
    let revision = text(&api.submit(&fleet.stack, false).await["id"]);
    let path = format!("/agents/{}/events", east.0);
    let unknown = "00000000-0000-4000-8000-000000000000";
    let response = api.post(&east.1, &path, &event(&east.0, unknown, "SUCCESS")).await;
    assert_eq!(response.expect_error(422), "foreign_key_violation");
    let mismatch = api.post(&east.1, &path, &event(unknown, &revision, "SUCCESS")).await;
    assert_eq!(mismatch.expect_error(400), "agent_id_mismatch");
    let mut long = event(&east.0, &revision, "SUCCESS");
    long["event_type"] = json!("x".repeat(51));
    assert_eq!(api.post(&east.1, &path, &long).await.expect_error(400), "invalid_event");
    long["event_type"] = json!("DEPLOY");
    for key in ["", &"k".repeat(256)] {
        assert_eq!(with_key(&fleet, key, &long).await.expect_error(400), "invalid_idempotency_key");
    }
    assert_eq!(events(&fleet).await.len(), 0);
}

#[tokio::test]
async fn a_heartbeat_keeps_fields_that_it_does_not_report() {
    let fleet = Fleet::new().await;
    let (path, read) = (format!("/agents/{}/heartbeat", fleet.agent.0), format!("/agents/{}", fleet.agent.0));
    let before = fleet.api.get(&fleet.agent.1, &read).await.json();
    assert!(before["last_heartbeat"].is_null());
    fleet
        .api
        .post(&fleet.agent.1, &path, &json!({"k8s_reachable": true, "k8s_api_latency_ms": 12}))
        .await
        .expect_status(204);
    let beat = fleet.api.post(&fleet.agent.1, &path, &json!({})).await.expect_status(204);
    assert_eq!(beat.header("sindri-agent-status"), "INACTIVE");
    fleet.api.put(&fleet.api.admin, &read, &json!({"status": "ACTIVE"})).await.expect_status(200);
    let beat = fleet.api.post(&fleet.agent.1, &path, &json!({})).await.expect_status(204);
    assert_eq!(beat.header("sindri-agent-status"), "ACTIVE");
    let after = fleet.api.get(&fleet.agent.1, &read).await.json();
    assert_eq!(after["k8s_api_latency_ms"], 12);
    assert_eq!(after["k8s_reachable"], true);
    assert!(after["last_heartbeat"].is_string());
}

#[tokio::test]
async fn the_events_of_a_stack_are_those_of_its_agents_and_an_agent_sees_its_own() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let west = api.create_agent("west", &[&fleet.generator.0]).await;
    let other = api.create_stack("other", &fleet.generator.0).await;
    for (agent, stack) in [(&west.0, &fleet.stack), (&fleet.agent.0, &other)] {
        api.target(agent, stack).await;
    }
    let (web, elsewhere) = (api.submit(&fleet.stack, false).await, api.submit(&other, false).await);
    for agent in [&fleet.agent, &west] {
        api.poll(agent).await;
        api.report(agent, &web, "FAILURE").await;
        api.report(agent, &web, "SUCCESS").await;
    }
    api.report(&fleet.agent, &elsewhere, "SUCCESS").await;
    let path = format!("/stacks/{}/events", fleet.stack);
    let list = async |key: &str, path: &str| -> Vec<Value> {
        api.get(key, path).await.expect_status(200).json().as_array().unwrap().clone()
    };
    let reported = |events: &[Value]| -> Vec<(String, String)> {
        events.iter().map(|event| (text(&event["agent_id"]), text(&event["status"]))).collect()
    };
    let of = |agent: &str| [(agent.to_owned(), "FAILURE".to_owned()), (agent.to_owned(), "SUCCESS".to_owned())];
    let both = [of(&fleet.agent.0), of(&west.0)].concat();
    for key in [&api.admin, &fleet.generator.1] {
        assert_eq!(reported(&list(key, &path).await), both);
    }
    assert_eq!(reported(&list(&west.1, &path).await), of(&west.0));
    // Page by page.
    let (mut paged, mut after) = (Vec::new(), String::new());
    for _ in 0..both.len() {
        let page = list(&api.admin, &format!("{path}?limit=1{after}")).await;
        after = format!("&after={}", text(&page[0]["id"]));
        paged.extend(page);
    }
    assert_eq!(reported(&paged), both);
    assert_eq!(list(&api.admin, &format!("{path}?limit=1{after}")).await, Vec::<Value>::new());
}
