//! Deactivated generators and agents are refused, and cannot activate themselves.

use http::Method;
use serde_json::json;

use crate::support::{BUNDLE, Fleet};

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
