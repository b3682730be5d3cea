//! Limits of connections: slow, idle and many clients, invalid HTTP, and shutdown.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures_util::stream;
use http::Request;
use jiff::Timestamp;
use sindri_broker::{Limits, ServeOptions, TrustedProxies};
use sindri_model::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, interval};

use crate::support::{Api, BUNDLE, counting_entropy};
use crate::test_server::{RawConnection, SHORT, TestServer, error_code, get, header, post, with_timeout};

/// Time between two bytes of a slow client.
const DRIP: Duration = Duration::from_millis(20);
const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n";

#[tokio::test]
async fn a_client_with_a_slow_head_is_disconnected_and_others_are_served() {
    let server = TestServer::new(Limits { head_time_max: SHORT, ..Limits::default() }).await;
    let mut slow = server.connect().await;
    let (mut drip, began) = (interval(DRIP), Instant::now());
    let dripping = async {
        for byte in "GET /healthz HTTP/1.1\r\nx-a: ".bytes().chain(std::iter::repeat(b'a')) {
            drip.tick().await;
            if slow.0.write_all(&[byte]).await.is_err() {
                break;
            }
        }
    };
    with_timeout(dripping).await;
    assert!(began.elapsed() >= SHORT, "the limit is not enforced too early");
    assert_eq!(server.request(HEALTH).await.0, 200);
    let (_, metrics) = server.request(&get("/metrics", "-")).await;
    assert!(metrics.contains("sindri_connections_refused_total{reason=\"slow_head\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_silent_client_is_disconnected_and_an_idle_one_after_a_request_is_not() {
    let server = TestServer::new(Limits { head_time_max: SHORT, ..Limits::default() }).await;
    let mut idle = server.connect().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.read_response().await.0, 200);
    server.connect().await.expect_close().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.read_response().await.0, 200);
    idle.send("GET /hea").await;
    idle.expect_close().await;
}

#[tokio::test]
async fn a_connection_that_is_idle_for_too_long_is_closed() {
    let server = TestServer::new(Limits { idle_time_max: SHORT, ..Limits::default() }).await;
    let mut idle = server.connect().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.read_response().await.0, 200);
    idle.expect_close().await;
}

#[tokio::test]
async fn a_slow_body_is_rejected() {
    let server = TestServer::new(Limits { body_time_max: SHORT, ..Limits::default() }).await;
    let mut slow = server.connect().await;
    slow.send(&post("/api/v1/generators", &server.admin, 1000)).await;
    slow.send("{\"name\"").await;
    let (status, body) = slow.read_response().await;
    assert_eq!((status, error_code(&body).as_str()), (408, "body_timeout"));
    slow.expect_close().await;
}

#[tokio::test]
async fn the_time_of_a_revision_is_when_its_body_has_arrived() {
    let second = Arc::new(AtomicI64::new(1_700_000_000));
    let now = second.clone();
    let clock = Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap());
    let api = Api::with_clock(":memory:", clock, counting_entropy()).await;
    let (generator, _) = api.create_generator("shop").await;
    let stack = api.create_stack("web", &generator).await;
    let slowly = stream::once(async move {
        second.fetch_add(60, Ordering::SeqCst);
        Ok::<_, Infallible>(BUNDLE)
    });
    let request = Request::post(format!("/api/v1/stacks/{stack}/deployment-objects"))
        .header("authorization", &api.admin)
        .header("content-type", "application/yaml")
        .body(Body::from_stream(slowly))
        .unwrap();
    let created = api.send(request).await.expect_status(201).json();
    assert_eq!(created["created_at"].as_str().unwrap().parse::<Timestamp>().unwrap().as_second(), 1_700_000_060);
}

#[tokio::test]
async fn a_truncated_body_changes_nothing() {
    let server = TestServer::new(Limits::default()).await;
    let whole = "{\"name\": \"shop\"}";
    let mut short = server.connect().await;
    short.send(&post("/api/v1/generators", &server.admin, whole.len() + 1)).await;
    short.send(whole).await;
    short.0.shutdown().await.unwrap();
    with_timeout(async {
        let mut rest = Vec::new();
        // An error response or a closed connection: only the stored state counts.
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut short.0, &mut rest).await;
        assert!(!String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 2"));
    })
    .await;
    let (status, body) = server.request(&get("/api/v1/generators", &server.admin)).await;
    assert_eq!((status, body.as_str()), (200, "[]"));
}

#[tokio::test]
async fn a_head_that_is_too_large_or_has_too_many_lines_is_rejected() {
    let server = TestServer::new(Limits::default()).await;
    let large = format!("GET /healthz HTTP/1.1\r\nhost: b\r\nx-a: {}\r\n\r\n", "a".repeat(17 * 1024));
    assert_eq!(server.request(&large).await.0, 431);
    let many = format!("GET /healthz HTTP/1.1\r\nhost: b\r\n{}\r\n", "x-a: a\r\n".repeat(101));
    assert_eq!(server.request(&many).await.0, 431);
    assert_eq!(server.request("nonsense\r\n\r\n").await.0, 400);
}

#[tokio::test]
async fn a_client_that_reads_no_response_is_disconnected() {
    let server = TestServer::new(Limits { stall_time_max: SHORT, ..Limits::default() }).await;
    let (_, created) = send_json(&server, "/api/v1/generators", "{\"name\": \"shop\"}").await;
    let stack = format!("{{\"name\": \"web\", \"generator_id\": {}}}", created["generator"]["id"]);
    let (_, stack) = send_json(&server, "/api/v1/stacks", &stack).await;
    let path = format!("/api/v1/stacks/{}/deployment-objects", stack["id"].as_str().unwrap());
    let bundle = format!("{BUNDLE}data: {{a: {}}}\n", "a".repeat(1024 * 1024));
    let bundle = serde_json::json!({"yaml_content": bundle}).to_string();
    assert_eq!(send_json(&server, &path, &bundle).await.0, 201);
    let mut deaf = server.connect().await;
    deaf.send(&get(&path, &server.admin).repeat(50)).await;
    let mut ticks = interval(DRIP);
    with_timeout(async {
        while deaf.0.write_all(b"G").await.is_ok() {
            ticks.tick().await;
        }
    })
    .await;
}

async fn send_json(server: &TestServer, path: &str, body: &str) -> (u16, serde_json::Value) {
    let request = format!("{}{body}", post(path, &server.admin, body.len()));
    let (status, body) = server.request(&request).await;
    (status, serde_json::from_str(&body).unwrap())
}

/// Begins a poll that waits, and returns its connection.
async fn wait_with_poll(server: &TestServer, agent: &str, key: &str) -> RawConnection {
    let mut poll = server.connect().await;
    let path = format!("/api/v1/agents/{agent}/target-state");
    poll.send(&get(&path, key)).await;
    let head = poll.read_head().await;
    let (etag, length) = (header(&head, "etag").unwrap(), header(&head, "content-length").unwrap().parse().unwrap());
    poll.0.read_exact(&mut vec![0; length]).await.unwrap();
    let headers = format!("host: b\r\nauthorization: {key}\r\nif-none-match: {etag}\r\n");
    poll.send(&format!("GET {path}?wait=300 HTTP/1.1\r\n{headers}\r\n")).await;
    poll
}

#[tokio::test]
async fn silent_clients_shut_out_neither_probes_nor_agents() {
    let server = TestServer::new(Limits { connections_max: 4, ..Limits::default() }).await;
    let (status, created) = send_json(&server, "/api/v1/agents", "{\"name\": \"east\", \"cluster_name\": \"c\"}").await;
    assert_eq!(status, 201);
    let (agent, key) = (created["agent"]["id"].as_str().unwrap(), created["initial_pak"].as_str().unwrap());
    let mut poll = wait_with_poll(&server, agent, key).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.connect().await);
        assert_eq!(server.request(HEALTH).await.0, 200);
        assert_eq!(server.request(&post("/api/v1/auth/pak", key, 0)).await.0, 200);
    }
    let change = "{\"status\": \"ACTIVE\"}";
    let path = format!("/api/v1/agents/{agent}");
    let head = post(&path, &server.admin, change.len()).replacen("POST", "PUT", 1);
    assert_eq!(server.request(&format!("{head}{change}")).await.0, 200);
    assert!([200, 304].contains(&poll.read_response().await.0), "the poll has waited all the time");
    silent[0].expect_close().await;
    let (_, metrics) = server.request(&get("/metrics", "-")).await;
    assert!(metrics.contains("sindri_connections_refused_total{reason=\"no_room\"}"), "{metrics}");
}

#[tokio::test]
async fn shutdown_closes_idle_connections_at_once_and_finishes_a_request_in_progress() {
    let mut server = TestServer::new(Limits::default()).await;
    let mut idle = server.connect().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.read_response().await.0, 200);
    let (body, mut busy) = ("{\"name\": \"shop\"}", server.connect().await);
    let (begun, rest) = body.split_at(5);
    busy.send(&format!("{}{begun}", post("/api/v1/generators", &server.admin, body.len()))).await;
    // This response comes after the head above, so the broker has received that head.
    assert_eq!(server.request(HEALTH).await.0, 200);
    server.stop();
    idle.expect_close().await;
    busy.send(rest).await;
    assert_eq!(busy.read_response().await.0, 201);
    busy.expect_close().await;
    server.await_shutdown().await;
}

#[tokio::test]
async fn shutdown_disconnects_a_request_that_does_not_finish() {
    let mut server = TestServer::new(Limits { shutdown_time_max: SHORT, ..Limits::default() }).await;
    let mut busy = server.connect().await;
    busy.send(&post("/api/v1/generators", &server.admin, 100)).await;
    assert_eq!(server.request(HEALTH).await.0, 200);
    server.stop();
    server.await_shutdown().await;
    busy.expect_close().await;
}

#[tokio::test]
async fn requests_are_counted_by_the_template_of_their_route() {
    let server = TestServer::new(Limits::default()).await;
    let paths = ["/api/v1/agents/1", "/api/v1/agents/2", "/nowhere/1", "/nowhere/2"];
    for path in paths {
        server.request(&get(path, &server.admin)).await;
    }
    server.request(&get("/api/v1/agents", "unknown")).await;
    let (status, metrics) = server.request(&get("/metrics", "-")).await;
    assert_eq!(status, 200);
    for line in [
        "sindri_http_requests_total{method=\"GET\",route=\"/api/v1/agents/{id}\",status=\"400\"} 2",
        "sindri_http_requests_total{method=\"GET\",route=\"-\",status=\"404\"} 2",
        "sindri_http_requests_total{method=\"GET\",route=\"/api/v1/agents\",status=\"401\"} 1",
        "sindri_http_request_duration_seconds_count{route=\"/api/v1/agents/{id}\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    assert!(paths.iter().all(|path| !metrics.contains(path)));
}

#[tokio::test]
async fn wrong_keys_from_one_address_are_throttled_and_valid_ones_are_not() {
    let server = TestServer::new(Limits::default()).await;
    let (status, created) = send_json(&server, "/api/v1/generators", "{\"name\": \"shop\"}").await;
    assert_eq!(status, 201);
    let fresh = created["pak"].as_str().unwrap();
    let guess = get("/api/v1/stacks", "brokkr_BRabcdef_nothing");
    for _ in 0..10 {
        assert_eq!(server.request(&guess).await.0, 401);
    }
    let mut peer = server.connect().await;
    peer.send(&guess).await;
    let head = peer.read_head().await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    assert!((1..=61).contains(&header(&head, "retry-after").unwrap().parse().unwrap()), "{head}");
    let (status, body) = server.request(&get("/api/v1/stacks", "nonsense")).await;
    assert_eq!((status, error_code(&body).as_str()), (429, "too_many_failures"));
    assert_eq!(server.request(&get("/api/v1/stacks", &server.admin)).await.0, 200);
    assert_eq!(server.request(&get("/api/v1/stacks", fresh)).await.0, 200, "a key that is used for the first time");
    assert_eq!(server.request(HEALTH).await.0, 200);
    let (_, metrics) = server.request(&get("/metrics", "-")).await;
    assert!(metrics.contains("sindri_throttled_keys_total 2"), "{metrics}");
}

#[tokio::test]
async fn at_the_limit_of_a_peer_its_oldest_connection_without_a_key_is_closed() {
    let server = TestServer::new(Limits { connections_per_peer_max: 3, ..Limits::default() }).await;
    let whoami = post("/api/v1/auth/pak", &server.admin, 0);
    let (mut agent, mut silent) = (server.connect().await, server.connect().await);
    agent.send(&whoami).await;
    assert_eq!(agent.read_response().await.0, 200);
    silent.send(HEALTH).await;
    assert_eq!(silent.read_response().await.0, 200);
    let mut others = Vec::new();
    for _ in 0..4 {
        let mut next = server.connect().await;
        next.send(&whoami).await;
        assert_eq!(next.read_response().await.0, 200, "clients without a key do not shut out those with one");
        others.push(server.connect().await);
    }
    silent.expect_close().await;
    agent.send(HEALTH).await;
    assert_eq!(agent.read_response().await.0, 200);
    let (_, metrics) = server.request(&get("/metrics", "-")).await;
    assert!(metrics.contains("reason=\"many_of_peer\""), "{metrics}");
}

/// Starts a server behind a proxy on this machine.
async fn behind_proxy(limits: Limits) -> TestServer {
    let proxies = TrustedProxies::parse("127.0.0.1").unwrap();
    TestServer::with_proxies(ServeOptions { limits, has_proxy_headers: true, ..ServeOptions::default() }, proxies).await
}

#[tokio::test]
async fn a_trusted_proxy_names_its_client_at_the_start_of_a_connection() {
    let server = behind_proxy(Limits::default()).await;
    let whoami = "POST /api/v1/auth/pak HTTP/1.1\r\nhost: b\r\nauthorization: wrong\r\ncontent-length: 0\r\n\r\n";
    let status = async |client: &str| server.request(&format!("PROXY TCP4 {client} 127.0.0.1 1 2\r\n{whoami}")).await.0;
    for _ in 0..10 {
        assert_eq!(status("192.0.2.1").await, 401);
    }
    assert_eq!(status("192.0.2.1").await, 429, "its wrong keys count");
    assert_eq!(status("192.0.2.2").await, 401, "not for its neighbours");
    assert_eq!(server.request(&format!("PROXY UNKNOWN\r\n{HEALTH}")).await.0, 200, "a health check of the proxy");
}

#[tokio::test]
async fn a_connection_of_a_trusted_proxy_without_its_header_is_closed() {
    let server = behind_proxy(Limits { handshake_time_max: SHORT, ..Limits::default() }).await;
    let mut other = server.connect().await;
    other.send(HEALTH).await;
    other.expect_close().await;
    server.connect().await.expect_close().await;
    let (_, metrics) = server.request(&format!("PROXY UNKNOWN\r\n{}", get("/metrics", "-"))).await;
    assert!(metrics.contains("sindri_connections_refused_total{reason=\"proxy_header\"} 2"), "{metrics}");
}

#[tokio::test]
async fn the_connections_of_each_client_of_a_proxy_are_limited() {
    let server = behind_proxy(Limits { connections_per_peer_max: 1, ..Limits::default() }).await;
    let open = async |client: &str| {
        let mut connection = server.connect().await;
        connection.send(&format!("PROXY TCP4 {client} 127.0.0.1 1 2\r\n{HEALTH}")).await;
        connection
    };
    let mut first = open("192.0.2.1").await;
    assert_eq!(first.read_response().await.0, 200);
    assert_eq!(open("192.0.2.1").await.read_response().await.0, 200);
    first.expect_close().await;
    assert_eq!(open("192.0.2.2").await.read_response().await.0, 200);
}
