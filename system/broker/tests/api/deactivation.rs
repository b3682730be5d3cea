//! Deactivated generators and agents are refused, and cannot activate themselves.

use std::time::Duration;

use axum::body::Body;
use http::{Method, Request};
use serde_json::json;

use crate::support::{BUNDLE, Fleet, text};

#[tokio::test]
async fn a_deactivated_generator_reads_and_changes_nothing_until_an_administrator_activates_it() {
    let fleet = Fleet::new().await;
    let (api, (generator, key)) = (&fleet.api, &fleet.generator);
    let (own, submit) = (format!("/generators/{generator}"), format!("/stacks/{}/deployment-objects", fleet.stack));
    let bundle = json!({"yaml_content": BUNDLE});
    api.post(key, &submit, &bundle).await.expect_status(201);
    let itself = api.put(key, &own, &json!({"is_active": false})).await.expect_error(403);
    assert_eq!(itself, "admin_required");
    api.put(key, &own, &json!({"is_active": true, "description": "its whole record"})).await.expect_status(200);
    api.put(&api.admin, &own, &json!({"is_active": false})).await.expect_status(200);
    for refused in [
        api.post(key, &submit, &bundle).await,
        api.put(key, &own, &json!({"is_active": true})).await,
        api.post(key, "/stacks", &json!({"name": "new", "generator_id": generator})).await,
        api.call(key, Method::DELETE, &format!("/stacks/{}", fleet.stack), None).await,
        api.call(key, Method::DELETE, &own, None).await,
        api.call(key, Method::POST, &format!("{own}/rotate-pak"), None).await,
    ] {
        assert_eq!(refused.expect_error(403), "generator_inactive");
    }
    api.get(key, &own).await.expect_status(200);
    api.post(key, "/auth/pak", &json!({})).await.expect_status(200);
    api.post(&api.admin, &submit, &bundle).await.expect_status(201);
    api.put(&api.admin, &own, &json!({"is_active": true})).await.expect_status(200);
    api.post(key, &submit, &bundle).await.expect_status(201);
}

#[tokio::test]
async fn an_agent_changes_neither_its_status_nor_its_name() {
    let fleet = Fleet::new().await;
    let (api, (agent, key)) = (&fleet.api, &fleet.agent);
    let own = format!("/agents/{agent}");
    for refused in [json!({"status": "ACTIVE"}), json!({"name": "west"}), json!({"cluster_name": "other"})] {
        assert_eq!(api.put(key, &own, &refused).await.expect_error(403), "admin_required");
        api.put(&api.admin, &own, &refused).await.expect_status(200);
    }
    let record = api.put(key, &own, &json!({"status": "ACTIVE", "name": "west", "cluster_name": "other"})).await;
    assert_eq!(record.expect_status(200).json()["status"], "ACTIVE", "its own record is no change");
    api.put(&api.admin, &own, &json!({"status": "INACTIVE"})).await.expect_status(200);
    assert_eq!(api.put(key, &own, &json!({"status": "ACTIVE"})).await.expect_error(403), "admin_required");
}

#[tokio::test]
async fn a_deactivated_agent_gets_no_bundle_and_no_message_and_reports_what_it_did() {
    let fleet = Fleet::new().await;
    let (api, (agent, key)) = (&fleet.api, &fleet.agent);
    let revision = api.submit(&fleet.stack, false).await;
    let own = format!("/agents/{agent}");
    let refused = [
        format!("{own}/target-state"),
        format!("{own}/target-state?wait=1"),
        format!("{own}/target-state?mode=full"),
        format!("{own}/target-state?mode=incremental"),
        format!("{own}/proposals"),
        format!("{own}/webhooks/pending"),
        format!("/deployment-objects/{}", text(&revision["id"])),
    ];
    let set_status = async |status: &str| {
        api.put(&api.admin, &own, &json!({"status": status})).await.expect_status(200);
    };
    // An agent that was never active reads its target state, as with the published broker.
    for status in [None, Some("ACTIVE")] {
        if let Some(status) = status {
            set_status(status).await;
        }
        for path in &refused {
            api.get(key, path).await.expect_status(200);
        }
    }
    set_status("INACTIVE").await;
    for path in &refused {
        assert_eq!(api.get(key, path).await.expect_error(403), "agent_inactive", "{path}");
    }
    let rotated = api.call(key, Method::POST, &format!("{own}/rotate-pak"), None).await;
    assert_eq!(rotated.expect_error(403), "agent_inactive");
    api.get(&api.admin, &refused[0]).await.expect_status(200);
    for path in [own.clone(), format!("{own}/policies"), format!("{own}/outcomes")] {
        api.get(key, &path).await.expect_status(200);
    }
    api.post(key, &format!("{own}/heartbeat"), &json!({})).await.expect_status(204);
    api.post(key, "/auth/pak", &json!({})).await.expect_status(200);
    api.report(&fleet.agent, &revision, "SUCCESS").await;
    set_status("ACTIVE").await;
    assert_eq!(fleet.poll().await.len(), 1);
}

#[tokio::test]
async fn the_waiting_poll_of_an_agent_that_is_deactivated_ends_without_a_bundle() {
    let fleet = Fleet::new().await;
    let (api, (agent, key)) = (&fleet.api, &fleet.agent);
    let own = format!("/agents/{agent}");
    api.put(&api.admin, &own, &json!({"status": "ACTIVE"})).await.expect_status(200);
    let path = format!("{own}/target-state");
    let etag = api.get(key, &path).await.expect_status(200).header("etag").to_owned();
    let waiting = Request::get(format!("/api/v1{path}?wait=30")).header("authorization", key);
    let waiting = api.send(waiting.header("if-none-match", etag).body(Body::empty()).unwrap());
    let deactivate = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        api.put(&api.admin, &own, &json!({"status": "INACTIVE"})).await.expect_status(200);
    };
    let (ended, ()) = tokio::join!(waiting, deactivate);
    assert_eq!(ended.expect_error(403), "agent_inactive");
}
