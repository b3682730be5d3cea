//! Health of revisions and status of agents.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Api, Fleet, text};

async fn say(fleet: &Fleet, revision: &Value, status: &str) -> crate::support::TestResponse {
    let said =
        json!({"id": revision["id"], "status": status, "checked_at": "2026-01-01T00:00:00Z", "summary": {"p": 1}});
    let body = json!({"deployment_objects": [said]});
    let path = format!("/agents/{}/health-status", fleet.agent.0);
    fleet.api.call(&fleet.agent.1, Method::PATCH, &path, Some(&body)).await
}

async fn read(api: &Api, path: String) -> Value {
    api.get(&api.admin, &path).await.expect_status(200).json()
}

#[tokio::test]
async fn the_health_of_a_stack_is_the_worst_of_the_newest_revisions() {
    let fleet = Fleet::new().await;
    let (api, stack) = (&fleet.api, &fleet.stack);
    let first = api.submit(stack, false).await;
    assert_eq!(read(api, format!("/stacks/{stack}/health")).await["overall_status"], "unknown");
    assert_eq!(say(&fleet, &first, "failing").await.expect_status(200).json(), json!({}));
    let of_stack = read(api, format!("/stacks/{stack}/health")).await;
    assert_eq!(of_stack["overall_status"], "failing");
    let counted =
        json!({"id": first["id"], "status": "failing", "healthy_agents": 0, "degraded_agents": 0, "failing_agents": 1});
    assert_eq!(of_stack["deployment_objects"], json!([counted]));
    let second = api.submit(stack, false).await;
    say(&fleet, &second, "degraded").await.expect_status(200);
    let of_stack = read(api, format!("/stacks/{stack}/health")).await;
    assert_eq!(of_stack["overall_status"], "degraded");
    assert_eq!(of_stack["deployment_objects"].as_array().unwrap().len(), 1);
    let of_first = read(api, format!("/deployment-objects/{}/health", text(&first["id"]))).await;
    assert_eq!((&of_first["overall_status"], &of_first["deployment_object_id"]), (&json!("failing"), &first["id"]));
    assert_eq!(of_first["health_records"][0]["summary"], r#"{"p":1}"#, "a JSON document in a string");
}

#[tokio::test]
async fn a_health_report_about_another_agents_revision_or_too_many_is_rejected() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let other = api.create_stack("other", &fleet.generator.0).await;
    let foreign = api.submit(&other, false).await;
    assert_eq!(say(&fleet, &foreign, "healthy").await.expect_error(422), "foreign_key_violation");
    assert_eq!(say(&fleet, &foreign, "splendid").await.expect_error(422), "invalid_health_record");
    let said = json!({"id": foreign["id"], "status": "healthy", "checked_at": "2026-01-01T00:00:00Z"});
    let body = json!({"deployment_objects": vec![said; 1001]});
    let path = format!("/agents/{}/health-status", fleet.agent.0);
    let response = api.call(&fleet.agent.1, Method::PATCH, &path, Some(&body)).await;
    assert_eq!(response.expect_error(422), "invalid_health_record");
    assert_eq!(read(api, format!("/stacks/{other}/health")).await["deployment_objects"], json!([]));
}

#[tokio::test]
async fn the_fleet_has_pending_counts_and_deleted_agents_with_pending_removals() {
    let fleet = Fleet::new().await;
    let (api, agent) = (&fleet.api, &fleet.agent.0);
    let revision = api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    let record = read(api, "/fleet".to_owned()).await[0].clone();
    assert_eq!((&record["agent_id"], &record["status"]), (&json!(agent), &json!("INACTIVE")));
    assert_eq!((&record["pending_object_count"], &record["last_heartbeat"]), (&json!(1), &Value::Null));
    api.report(&fleet.agent, &revision, "SUCCESS").await;
    say(&fleet, &revision, "failing").await.expect_status(200);
    api.post(&fleet.agent.1, &format!("/agents/{agent}/heartbeat"), &json!({"k8s_reachable": true}))
        .await
        .expect_status(204);
    let one = read(api, format!("/agents/{agent}/fleet-status")).await;
    let record = &one["record"];
    assert_eq!((&record["pending_object_count"], &record["health_failing"]), (&json!(0), &json!(1)));
    assert_eq!((&record["heartbeat_age_seconds"], &record["seconds_since_last_event"]), (&json!(0), &json!(0)));
    assert_eq!(record["k8s_reachable"], true);
    assert_eq!(one["recent_events"][0]["deployment_object_id"], revision["id"]);
    api.delete(&format!("/agents/{agent}")).await.expect_status(204);
    assert_eq!(read(api, "/fleet".to_owned()).await[0]["status"], "DELETED");
}

#[tokio::test]
async fn recent_events_are_the_last_twenty_newest_first() {
    let fleet = Fleet::new().await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    for _ in 0..21 {
        fleet.api.report(&fleet.agent, &revision, "FAILURE").await;
    }
    fleet.api.report(&fleet.agent, &revision, "SUCCESS").await;
    let recent = read(&fleet.api, format!("/agents/{}/fleet-status", fleet.agent.0)).await["recent_events"].clone();
    assert_eq!(recent.as_array().unwrap().len(), 20);
    assert_eq!((&recent[0]["status"], &recent[1]["status"]), (&json!("SUCCESS"), &json!("FAILURE")));
}

#[tokio::test]
async fn metrics_have_the_figures_of_the_store() {
    let fleet = Fleet::new().await;
    fleet.api.create_webhook("hook", &["label"]).await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    let scrape = async |fleet: &Fleet| {
        let request = http::Request::builder().uri("/metrics").body(axum::body::Body::empty()).unwrap();
        String::from_utf8(fleet.api.send(request).await.body.to_vec()).unwrap()
    };
    fleet.poll().await;
    fleet.api.report(&fleet.agent, &revision, "FAILURE").await;
    let text = scrape(&fleet).await;
    for line in [
        "sindri_stacks_behind 0",
        "sindri_stacks_failed 1",
        "sindri_approvals_pending 0",
        "sindri_webhook_deliveries_pending 2",
        "sindri_agents_online 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("sindri_store_write_duration_seconds_count"), "{text}");
    // Figures are read again after a while only; durations are current.
    fleet.api.report(&fleet.agent, &revision, "SUCCESS").await;
    assert!(scrape(&fleet).await.contains("sindri_stacks_failed 1"));
}
