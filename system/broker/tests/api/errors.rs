//! Error responses, which all have the same shape.

use axum::body::Body;
use http::{Method, Request};
use serde_json::json;
use sindri_broker::BODY_BYTES_MAX;

use crate::support::{Api, BUNDLE, Fleet, TestResponse, text};

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";

async fn raw(fleet: &Fleet, content_type: &str, query: &str, body: impl Into<Body>) -> TestResponse {
    let request = Request::post(format!("/api/v1/stacks/{}/deployment-objects{query}", fleet.stack))
        .header("authorization", &fleet.api.admin)
        .header("content-type", content_type)
        .body(body.into())
        .unwrap();
    fleet.api.send(request).await
}

#[tokio::test]
async fn unknown_routes_and_invalid_ids_have_their_codes() {
    let api = Api::new().await;
    assert_eq!(api.get(&api.admin, "/nothing").await.expect_error(404), "route_not_found");
    assert_eq!(api.get(&api.admin, "/agents/not-a-uuid").await.expect_error(400), "invalid_id");
    assert_eq!(api.get(&api.admin, "/agents/").await.expect_error(400), "name_and_cluster_required");
    let response = api.call(&api.admin, Method::PATCH, "/agents", None).await;
    assert_eq!(response.expect_error(405), "method_not_allowed");
    let root = api.send(Request::get("/nothing").body(Body::empty()).unwrap()).await;
    assert_eq!(root.expect_error(404), "route_not_found");
}

#[tokio::test]
async fn the_code_names_the_object_that_does_not_exist() {
    let api = Api::new().await;
    for (path, code) in [
        ("agents/ID", "agent_not_found"),
        ("agents/ID/target-state", "agent_not_found"),
        ("agents/ID/events", "agent_not_found"),
        ("agent-events/ID", "agent_event_not_found"),
        ("deployment-objects/ID", "deployment_object_not_found"),
        ("generators/ID", "generator_not_found"),
        ("stacks/ID", "stack_not_found"),
        ("stacks/ID/deployment-objects", "stack_not_found"),
        ("agents/?name=a&cluster_name=b", "agent_not_found"),
    ] {
        let path = format!("/{}", path.replace("ID", UNKNOWN_ID));
        assert_eq!(api.get(&api.admin, &path).await.expect_error(404), code, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_the_expected_json_is_rejected() {
    let api = Api::new().await;
    for body in ["", "{", "[]", "null", "{\"name\": 1}", "{\"name\": \"a\"}"] {
        let request = Request::post("/api/v1/agents").header("authorization", &api.admin).body(body.into()).unwrap();
        assert_eq!(api.send(request).await.expect_error(400), "invalid_json", "{body:?}");
    }
    for name in ["", "  ", "a\nb", &"x".repeat(256)] {
        let response = api.post(&api.admin, "/agents", &json!({"name": name, "cluster_name": "c"})).await;
        assert_eq!(response.expect_error(400), "invalid_agent", "{name:?}");
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_rejected_and_one_at_the_limit_is_not() {
    let fleet = Fleet::new().await;
    let mut text = format!("{BUNDLE}# ");
    text.push_str(&"x".repeat(BODY_BYTES_MAX - text.len()));
    raw(&fleet, "application/yaml", "", text.clone()).await.expect_status(201);
    text.push('x');
    assert_eq!(raw(&fleet, "application/yaml", "", text).await.expect_error(413), "body_too_large");
}

#[tokio::test]
async fn a_revision_is_accepted_as_json_and_as_yaml_and_stored_unchanged() {
    let fleet = Fleet::new().await;
    let exact = format!("# ü\r\n{BUNDLE}");
    for content_type in ["application/yaml", "text/yaml; charset=utf-8", "application/x-yaml"] {
        let revision = raw(&fleet, content_type, "", exact.clone()).await.expect_status(201).json();
        assert_eq!(text(&revision["yaml_content"]), exact);
        assert_eq!(revision["is_deletion_marker"], false);
    }
    let marker = raw(&fleet, "application/yaml", "?deletion_marker=true", "").await.expect_status(201).json();
    assert_eq!(marker["is_deletion_marker"], true);
    assert_eq!(raw(&fleet, "text/html", "", BUNDLE).await.expect_error(415), "unsupported_media_type");
    assert_eq!(raw(&fleet, "application/yaml", "", &b"\xff"[..]).await.expect_error(400), "invalid_deployment_object");
    for nothing in ["", "\n", "---\n", "# only words\n", "---\n# a\n---\n"] {
        let response = raw(&fleet, "application/yaml", "", nothing).await;
        assert_eq!(response.expect_error(400), "invalid_deployment_object", "{nothing:?}");
    }
}

#[tokio::test]
async fn an_existing_name_is_a_conflict_and_references_must_exist() {
    let fleet = Fleet::new().await;
    let (api, admin, agent) = (&fleet.api, &fleet.api.admin, &fleet.agent.0);
    let post = async |path: &str, body| api.post(admin, path, &body).await;
    let again = json!({"name": "east", "cluster_name": "c"});
    assert_eq!(post("/agents", again).await.expect_error(409), "unique_violation");
    assert_eq!(post("/generators", json!({"name": "shop"})).await.expect_error(409), "unique_violation");
    let stack = json!({"name": "web", "generator_id": fleet.generator.0});
    assert_eq!(post("/stacks", stack).await.expect_error(409), "unique_violation");
    let register = format!("/generators/{}/register", fleet.generator.0);
    assert_eq!(post(&register, json!({"agent_id": agent})).await.expect_error(409), "already_registered");
    assert_eq!(post(&register, json!({})).await.expect_error(400), "missing_agent_id");
    let targets = format!("/agents/{agent}/targets");
    let target = json!({"agent_id": agent, "stack_id": fleet.stack});
    assert_eq!(post(&targets, target).await.expect_error(409), "unique_violation");
    let elsewhere = json!({"agent_id": UNKNOWN_ID, "stack_id": fleet.stack});
    assert_eq!(post(&targets, elsewhere).await.expect_error(400), "agent_id_mismatch");
    let orphan = json!({"name": "orphan", "generator_id": UNKNOWN_ID});
    assert_eq!(post("/stacks", orphan).await.expect_error(422), "foreign_key_violation");
    let lost = json!({"name": "lost", "cluster_name": "c", "generator_ids": [UNKNOWN_ID]});
    assert_eq!(post("/agents", lost).await.expect_error(400), "invalid_generator_id");
    let missing = api.get(admin, "/agents/?name=lost&cluster_name=c").await;
    assert_eq!(missing.expect_error(404), "agent_not_found", "a rejected agent was created");
}

#[tokio::test]
async fn a_target_needs_a_registration_with_the_stacks_generator() {
    let fleet = Fleet::new().await;
    let west = fleet.api.create_agent("west", &[]).await;
    let (path, body) = (format!("/agents/{}/targets", west.0), json!({"agent_id": west.0, "stack_id": fleet.stack}));
    let refused = fleet.api.post(&fleet.api.admin, &path, &body).await;
    assert_eq!(refused.expect_error(403), "agent_not_registered");
    // An agent may register itself without its id.
    fleet
        .api
        .post(&west.1, &format!("/generators/{}/register", fleet.generator.0), &json!({}))
        .await
        .expect_status(201);
    fleet.api.post(&fleet.api.admin, &path, &body).await.expect_status(201);
}

#[tokio::test]
async fn health_needs_no_key() {
    let api = Api::new().await;
    for path in ["/healthz", "/readyz"] {
        api.send(Request::get(path).body(Body::empty()).unwrap()).await.expect_status(200);
    }
}
