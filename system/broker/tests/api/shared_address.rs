//! Clients that share an address: behind a NAT, or behind a proxy that names them.

use std::net::{IpAddr, Ipv4Addr};

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::Value;
use sindri_broker::{Broker, PeerAddress, SqliteStore, TrustedProxies, router};
use sindri_model::{Entropy, Pak};
use tower::ServiceExt;

use crate::support::{counting_entropy, fixed_clock, text};

const NAT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn admin() -> Pak {
    Pak::generate(&Entropy::new(|bytes| bytes.fill(7)))
}

async fn open(path: &str, proxies: &str) -> Router {
    let store = SqliteStore::open(path, None).unwrap();
    let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
    broker.create_admin_key(&admin()).await.unwrap();
    router(broker.with_trusted_proxies(TrustedProxies::parse(proxies).unwrap()))
}

/// Sends a request from an address; returns its status and body.
async fn send(
    api: &Router,
    peer: IpAddr,
    key: &str,
    request: (&str, &str, &str),
    forwarded: &str,
) -> (StatusCode, Value) {
    let (method, path, body) = request;
    let request = Request::builder().method(method).uri(format!("/api/v1{path}")).header("authorization", key);
    let request = request.header("x-forwarded-for", forwarded).extension(PeerAddress(Some(peer)));
    let response = api.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn valid_keys_are_not_throttled_because_of_wrong_ones_from_their_address_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    let api = open(&path, "").await;
    let mut keys = Vec::new();
    for number in 0..20 {
        let body = format!("{{\"name\": \"g{number}\"}}");
        let (status, created) = send(&api, NAT, &admin().reveal(), ("POST", "/generators", &body), "").await;
        assert_eq!(status, StatusCode::CREATED);
        keys.push(text(&created["pak"]));
    }
    drop(api);
    let api = open(&path, "").await;
    let whoami = ("POST", "/auth/pak", "");
    let wrong = "brokkr_BRabcdef_nothing";
    while send(&api, NAT, wrong, whoami, "").await.0 != StatusCode::TOO_MANY_REQUESTS {}
    for key in keys {
        assert_eq!(send(&api, NAT, &key, whoami, "").await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_trusted_proxy_names_the_client_that_is_throttled_and_recorded() {
    let api = open(":memory:", "10.0.0.0/8").await;
    let whoami = ("POST", "/auth/pak", "");
    let wrong = "brokkr_BRabcdef_nothing";
    while send(&api, PROXY, wrong, whoami, "198.51.100.1").await.0 != StatusCode::TOO_MANY_REQUESTS {}
    assert_eq!(send(&api, PROXY, wrong, whoami, "198.51.100.2").await.0, StatusCode::UNAUTHORIZED);
    let create = ("POST", "/generators", "{\"name\": \"shop\"}");
    let (status, _) = send(&api, PROXY, &admin().reveal(), create, "spoofed, 198.51.100.2").await;
    assert_eq!(status, StatusCode::CREATED);
    let list = ("GET", "/admin/audit-logs?action=generator.created", "");
    let (_, logs) = send(&api, NAT, &admin().reveal(), list, "198.51.100.9").await;
    assert_eq!(logs["logs"][0]["ip_address"], "198.51.100.2");
}

#[tokio::test]
async fn guesses_with_the_prefix_of_a_key_are_throttled_and_other_keys_are_not() {
    let api = open(":memory:", "").await;
    let whoami = ("POST", "/auth/pak", "");
    let guess = format!("{}x", admin().reveal());
    for _ in 0..10 {
        assert_eq!(send(&api, NAT, &guess, whoami, "").await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(send(&api, NAT, &guess, whoami, "").await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(send(&api, NAT, "brokkr_BRabcdef_nothing", whoami, "").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(send(&api, PROXY, &admin().reveal(), whoami, "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_key_of_another_broker_is_known_at_a_throttled_address() {
    let store = SqliteStore::open(":memory:", None).unwrap();
    let start = async || Broker::start(store.replica(), fixed_clock(), counting_entropy()).await.unwrap();
    let (one, other) = (start().await, start().await);
    one.create_admin_key(&admin()).await.unwrap();
    let (one, other) = (router(one), router(other));
    let whoami = ("POST", "/auth/pak", "");
    let wrong = "brokkr_BRabcdef_nothing";
    while send(&other, NAT, wrong, whoami, "").await.0 != StatusCode::TOO_MANY_REQUESTS {}
    let (status, created) =
        send(&one, NAT, &admin().reveal(), ("POST", "/generators", "{\"name\": \"shop\"}"), "").await;
    assert_eq!(status, StatusCode::CREATED);
    // The known keys are read again once per second.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    // This one takes the lookup that a throttled address has.
    send(&other, NAT, wrong, whoami, "").await;
    assert_eq!(send(&other, NAT, &text(&created["pak"]), whoami, "").await.0, StatusCode::OK);
}
