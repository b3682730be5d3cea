//! Status of stacks.

use serde_json::{Value, json};

use crate::support::{Fleet, TestResponse, text};

async fn report(
    fleet: &Fleet,
    agent: &(String, String),
    revision: &Value,
    conditions: &[(&str, &str)],
) -> TestResponse {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "reason": "R", "message": "m"}))
        .collect();
    let body = json!({"deployment_object_id": revision["id"], "conditions": conditions});
    fleet.api.put(&agent.1, &format!("/agents/{}/stacks/{}/status", agent.0, fleet.stack), &body).await
}

async fn status(fleet: &Fleet) -> Value {
    fleet.api.get(&fleet.generator.1, &format!("/stacks/{}/status", fleet.stack)).await.expect_status(200).json()
}

async fn state(fleet: &Fleet) -> String {
    text(&status(fleet).await["state"])
}

#[tokio::test]
async fn a_stack_goes_from_progressing_to_ready_and_to_deleting() {
    let fleet = Fleet::new().await;
    let (api, east) = (&fleet.api, &fleet.agent);
    let empty = status(&fleet).await;
    assert_eq!((&empty["state"], &empty["sequence_id"]), (&json!("Progressing"), &Value::Null));
    let first = api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    let waiting = status(&fleet).await;
    assert_eq!((&waiting["state"], &waiting["deployment_object_id"]), (&json!("Progressing"), &first["id"]));
    let agent = json!({
        "agent_id": east.0, "name": "east", "cluster_name": "c", "conditions": [], "deployment_object_id": null,
        "sequence_id": null,
    });
    assert_eq!(waiting["agents"], json!([agent]));
    report(&fleet, east, &first, &[("Accepted", "True"), ("Applied", "False")]).await.expect_status(204);
    assert_eq!(state(&fleet).await, "Failed");
    report(&fleet, east, &first, &[("Applied", "True"), ("Ready", "Unknown")]).await.expect_status(204);
    assert_eq!(state(&fleet).await, "Applied");
    report(&fleet, east, &first, &[("Applied", "True"), ("Ready", "True")]).await.expect_status(204);
    let ready = status(&fleet).await;
    assert_eq!((&ready["state"], &ready["agents"][0]["sequence_id"]), (&json!("Ready"), &first["sequence_id"]));
    let applied = json!({
        "type": "Applied", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2023-11-14T22:13:20Z",
    });
    assert_eq!(ready["agents"][0]["conditions"][0], applied);
    let second = api.submit(&fleet.stack, false).await;
    assert_eq!(state(&fleet).await, "Progressing", "what was said about the older revision does not count");
    report(&fleet, east, &second, &[("Blocked", "True")]).await.expect_status(204);
    assert_eq!(state(&fleet).await, "Blocked");
    let marker = api.submit(&fleet.stack, true).await;
    assert_eq!(state(&fleet).await, "Deleting");
    api.report(east, &marker, "SUCCESS").await;
    assert_eq!(state(&fleet).await, "Ready", "no agent has the stack");
}

#[tokio::test]
async fn a_deleted_stack_has_a_status_until_every_agent_has_removed_it() {
    let fleet = Fleet::new().await;
    let (api, path) = (&fleet.api, format!("/stacks/{}/status", fleet.stack));
    api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    api.delete(&format!("/stacks/{}", fleet.stack)).await.expect_status(204);
    assert_eq!(state(&fleet).await, "Deleting");
    let marker = fleet.poll().await.remove(0);
    report(&fleet, &fleet.agent, &marker, &[("Deleting", "True")]).await.expect_status(204);
    api.report(&fleet.agent, &marker, "SUCCESS").await;
    assert_eq!(api.get(&api.admin, &path).await.expect_error(404), "stack_not_found");
}

#[tokio::test]
async fn a_report_beyond_its_limits_is_rejected() {
    let fleet = Fleet::new().await;
    let (api, east) = (&fleet.api, &fleet.agent);
    let revision = api.submit(&fleet.stack, false).await;
    let path = format!("/agents/{}/stacks/{}/status", east.0, fleet.stack);
    let condition = |kind: &str, reason: usize, message: usize| json!({"type": kind, "status": "True", "reason": "ü".repeat(reason), "message": "ü".repeat(message)});
    let before = api.count_audit_entries().await;
    let many = |count: usize| (0..count).map(|number| condition(&format!("T{number}"), 0, 0)).collect::<Vec<_>>();
    for (conditions, code) in [
        (many(17), "invalid_status"),
        (vec![condition("Ready", 0, 4_097)], "invalid_status"),
        (vec![condition("Ready", 257, 0)], "invalid_status"),
        (vec![condition(&"T".repeat(65), 0, 0)], "invalid_status"),
        (vec![condition("", 0, 0)], "invalid_status"),
        (vec![condition("a b", 0, 0)], "invalid_status"),
        (vec![condition("Ready", 0, 0), condition("Ready", 0, 0)], "invalid_status"),
        (vec![json!({"type": "Ready", "status": "true"})], "invalid_json"),
    ] {
        let body = json!({"deployment_object_id": revision["id"], "conditions": conditions});
        assert_eq!(api.put(&east.1, &path, &body).await.expect_error(400), code, "{body}");
    }
    let unknown = "00000000-0000-4000-8000-000000000000";
    let body = json!({"deployment_object_id": unknown, "conditions": []});
    assert_eq!(api.put(&east.1, &path, &body).await.expect_error(422), "foreign_key_violation");
    let elsewhere = path.replace(&fleet.stack, unknown);
    let body = json!({"deployment_object_id": revision["id"], "conditions": []});
    assert_eq!(api.put(&east.1, &elsewhere, &body).await.expect_error(404), "stack_not_found");
    assert_eq!(api.count_audit_entries().await, before);
    let mut most = many(15);
    most.push(condition(&"T".repeat(64), 256, 4_096));
    let body = json!({"deployment_object_id": revision["id"], "conditions": most});
    api.put(&east.1, &path, &body).await.expect_status(204);
    assert_eq!(api.count_audit_entries().await, before + 1);
    api.put(&east.1, &path, &body).await.expect_status(204);
    assert_eq!(api.count_audit_entries().await, before + 1, "the same again is no change");
}
