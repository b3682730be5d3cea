//! Administrators, keys that expire, and rotations with a grace period.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_broker::Limits;
use sindri_model::Clock;

use crate::support::{Api, Fleet, counting_entropy, text};
use crate::test_server::{TestServer, error_code, get};

/// A clock that a test sets.
#[derive(Clone, Default)]
struct SetClock(Arc<AtomicI64>);

impl SetClock {
    fn set(&self, second: i64) {
        self.0.store(second, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let seconds = self.0.clone();
        Clock::new(move || Timestamp::from_second(seconds.load(Ordering::SeqCst)).unwrap())
    }
}

async fn api_with_clock() -> (Api, SetClock) {
    let clock = SetClock::default();
    (Api::with_clock(":memory:", clock.clock(), counting_entropy()).await, clock)
}

fn time(second: i64) -> Value {
    json!(Timestamp::from_second(second).unwrap().to_string())
}

#[tokio::test]
async fn administrators_are_created_listed_rotated_and_deleted() {
    let api = Api::new().await;
    let anna = api.create_admin("anna", "admin").await;
    let listed = api.get(&anna.1, "/admins").await.expect_status(200).json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|admin| text(&admin["name"])).collect();
    assert_eq!(names, ["admin", "anna"]);
    let code = api.post(&api.admin, "/admins", &json!({"name": "anna"})).await.expect_error(409);
    assert_eq!(code, "unique_violation");
    // Another administrator rotates the key of the first one, and the first one its own.
    let first = text(&listed[0]["id"]);
    let rotated = api.post(&anna.1, &format!("/admins/{first}/rotate-pak"), &json!({})).await.expect_status(200).json();
    api.post(&api.admin, "/auth/pak", &json!({})).await.expect_status(401);
    let own = api.post(&text(&rotated["pak"]), "/admin/rotate-pak", &json!({})).await.expect_status(200).json();
    api.post(&text(&rotated["pak"]), "/auth/pak", &json!({})).await.expect_status(401);
    let identity = api.post(&text(&own["pak"]), "/auth/pak", &json!({})).await.expect_status(200).json();
    assert_eq!((&identity["admin"], &identity["readonly"]), (&json!(true), &json!(false)));
    for _ in 0..2 {
        let path = format!("/admins/{first}");
        api.call(&anna.1, http::Method::DELETE, &path, None).await.expect_status(204);
    }
    api.post(&text(&own["pak"]), "/auth/pak", &json!({})).await.expect_status(401);
    let path = format!("/admins/{}", anna.0);
    let last = api.call(&anna.1, http::Method::DELETE, &path, None).await.expect_error(409);
    assert_eq!(last, "last_admin");
}

#[tokio::test]
async fn names_of_people_are_reserved() {
    let api = Api::new().await;
    let code = api.post(&api.admin, "/admins", &json!({"name": "oidc:anna"})).await.expect_error(400);
    assert_eq!(code, "reserved_name");
    api.create_admin("oidc", "admin").await;
}

#[tokio::test]
async fn a_read_only_key_says_so() {
    let api = Api::new().await;
    let reader = api.create_admin("reader", "reader").await;
    let identity = api.post(&reader.1, "/auth/pak", &json!({})).await.expect_status(200).json();
    assert_eq!((&identity["admin"], &identity["readonly"]), (&json!(false), &json!(true)));
}

#[tokio::test]
async fn a_key_of_each_holder_ends_at_its_expiry() {
    let (api, clock) = api_with_clock().await;
    clock.set(100);
    let request = |name: &str| json!({"name": name, "cluster_name": "c", "key_expires_at": time(200)});
    let mut keys = Vec::new();
    for (path, field) in [("/admins", "pak"), ("/agents", "initial_pak"), ("/generators", "pak")] {
        let created = api.post(&api.admin, path, &request("brief")).await.expect_status(201).json();
        keys.push(text(&created[field]));
        let past = json!({"name": "past", "cluster_name": "c", "key_expires_at": time(100)});
        assert_eq!(api.post(&api.admin, path, &past).await.expect_error(400), "invalid_expiry");
    }
    for key in &keys {
        clock.set(199);
        api.post(key, "/auth/pak", &json!({})).await.expect_status(200);
        clock.set(200);
        assert_eq!(api.post(key, "/auth/pak", &json!({})).await.expect_error(401), "key_expired");
    }
    api.post(&api.admin, "/auth/pak", &json!({})).await.expect_status(200);
}

#[tokio::test]
async fn a_poll_with_an_expired_key_is_rejected() {
    let (api, clock) = api_with_clock().await;
    let request = json!({"name": "east", "cluster_name": "c", "key_expires_at": time(200)});
    let created = api.post(&api.admin, "/agents", &request).await.expect_status(201).json();
    let (key, path) =
        (text(&created["initial_pak"]), format!("/agents/{}/target-state", text(&created["agent"]["id"])));
    api.get(&key, &path).await.expect_status(200);
    clock.set(200);
    assert_eq!(api.get(&key, &path).await.expect_error(401), "key_expired");
}

#[tokio::test]
async fn a_replaced_key_ends_by_itself_after_its_grace_period() {
    let (api, clock) = api_with_clock().await;
    let agent = api.create_agent("east", &[]).await;
    let generator = api.create_generator("shop").await;
    let anna = api.create_admin("anna", "admin").await;
    for (path, old) in [
        (format!("/agents/{}/rotate-pak", agent.0), agent.1),
        (format!("/generators/{}/rotate-pak", generator.0), generator.1),
        (format!("/admins/{}/rotate-pak", anna.0), anna.1.clone()),
    ] {
        clock.set(100);
        let rotated = api.post(&old, &path, &json!({"grace_seconds": 60})).await.json();
        let new = text(&rotated["pak"]);
        clock.set(159);
        for key in [&old, &new] {
            api.post(key, "/auth/pak", &json!({})).await.expect_status(200);
        }
        // A key in its grace period does not replace the one that has replaced it.
        assert_eq!(api.post(&old, &path, &json!({})).await.expect_error(409), "key_changed");
        clock.set(160);
        assert_eq!(api.post(&old, "/auth/pak", &json!({})).await.expect_error(401), "key_expired");
        api.post(&new, "/auth/pak", &json!({})).await.expect_status(200);
    }
}

#[tokio::test]
async fn an_administrator_with_all_permissions_and_a_lasting_key_is_always_left() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let expiring = json!({"key_expires_at": "2999-01-01T00:00:00Z"});
    assert_eq!(api.post(&api.admin, "/admin/rotate-pak", &expiring).await.expect_error(409), "last_admin");
    api.create_admin("reader", "reader").await;
    assert_eq!(api.post(&api.admin, "/admin/rotate-pak", &expiring).await.expect_error(409), "last_admin");
    api.create_admin("anna", "admin").await;
    api.post(&api.admin, "/admin/rotate-pak", &expiring).await.expect_status(200);
}

#[tokio::test]
async fn failed_logins_are_audited_without_the_key() {
    let server = TestServer::new(Limits::default()).await;
    let wrong = "brokkr_BRwrongxx_secretsecret";
    for key in [wrong, wrong, "not-a-key", "brokkr_BRother1_secretsecret"] {
        let (status, body) = server.request(&get("/api/v1/agents", key)).await;
        assert_eq!((status, error_code(&body).as_str()), (401, "unauthorized"));
    }
    let entries = async || {
        let request = get("/api/v1/admin/audit-logs?action=login.failed", &server.admin);
        let (status, body) = server.request(&request).await;
        assert_eq!(status, 200);
        assert!(!body.contains("secretsecret") && !body.contains("not-a-key"), "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["logs"].as_array().unwrap().clone()
    };
    for _ in 0..100 {
        if entries().await.len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let entries = entries().await;
    let found: Vec<_> =
        entries.iter().map(|log| (&log["details"]["key_prefix"], &log["details"]["unrecorded"])).collect();
    let expected = [(&json!("BRother1"), &json!(0)), (&Value::Null, &json!(1)), (&json!("BRwrongx"), &json!(0))];
    assert_eq!(found, expected);
    assert!(entries.iter().all(|log| log["ip_address"] == "127.0.0.1" && log["actor_type"] == "system"));
}
