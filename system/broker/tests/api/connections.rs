//! Peers that are slow, rude, many or gone, and the end of serving.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures_util::stream;
use http::Request;
use jiff::Timestamp;
use sindri_broker::Limits;
use sindri_model::Clock;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, interval};

use crate::served::{SHORT, Served, code, get, header, in_time, post};
use crate::support::{Api, BUNDLE, counting_entropy};

/// Between two bytes of a peer that takes its time.
const DRIP: Duration = Duration::from_millis(20);
const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n";

#[tokio::test]
async fn a_peer_that_drips_a_head_is_cut_off_and_others_are_served() {
    let served = Served::new(Limits { head_time_max: SHORT, ..Limits::default() }).await;
    let mut slow = served.peer().await;
    let (mut drip, began) = (interval(DRIP), Instant::now());
    let dripping = async {
        for byte in "GET /healthz HTTP/1.1\r\nx-a: ".bytes().chain(std::iter::repeat(b'a')) {
            drip.tick().await;
            if slow.0.write_all(&[byte]).await.is_err() {
                break;
            }
        }
    };
    in_time(dripping).await;
    assert!(began.elapsed() >= SHORT, "the time that it may take is given");
    assert_eq!(served.ask(HEALTH).await.0, 200);
    let (_, metrics) = served.ask(&get("/metrics", "-")).await;
    assert!(metrics.contains("sindri_connections_refused_total{reason=\"slow_head\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_silent_peer_is_cut_off_and_an_idle_one_that_has_asked_is_not() {
    let served = Served::new(Limits { head_time_max: SHORT, ..Limits::default() }).await;
    let mut idle = served.peer().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.answer().await.0, 200);
    served.peer().await.closed().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.answer().await.0, 200);
    idle.send("GET /hea").await;
    idle.closed().await;
}

#[tokio::test]
async fn a_connection_that_is_idle_for_too_long_is_closed() {
    let served = Served::new(Limits { idle_time_max: SHORT, ..Limits::default() }).await;
    let mut idle = served.peer().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.answer().await.0, 200);
    idle.closed().await;
}

#[tokio::test]
async fn a_body_that_trickles_is_refused() {
    let served = Served::new(Limits { body_time_max: SHORT, ..Limits::default() }).await;
    let mut slow = served.peer().await;
    slow.send(&post("/api/v1/generators", &served.admin, 1000)).await;
    slow.send("{\"name\"").await;
    let (status, body) = slow.answer().await;
    assert_eq!((status, code(&body).as_str()), (408, "body_timeout"));
    slow.closed().await;
}

#[tokio::test]
async fn a_revision_that_comes_slowly_counts_from_when_it_is_there() {
    let second = Arc::new(AtomicI64::new(1_700_000_000));
    let now = second.clone();
    let clock = Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap());
    let api = Api::with_clock(":memory:", clock, counting_entropy()).await;
    let (generator, _) = api.generator("shop").await;
    let stack = api.stack("web", &generator).await;
    let slowly = stream::once(async move {
        second.fetch_add(60, Ordering::SeqCst);
        Ok::<_, Infallible>(BUNDLE)
    });
    let request = Request::post(format!("/api/v1/stacks/{stack}/deployment-objects"))
        .header("authorization", &api.admin)
        .header("content-type", "application/yaml")
        .body(Body::from_stream(slowly))
        .unwrap();
    let made = api.send(request).await.with(201).json();
    assert_eq!(made["created_at"].as_str().unwrap().parse::<Timestamp>().unwrap().as_second(), 1_700_000_060);
}

#[tokio::test]
async fn a_body_that_ends_early_changes_nothing() {
    let served = Served::new(Limits::default()).await;
    let whole = "{\"name\": \"shop\"}";
    let mut short = served.peer().await;
    short.send(&post("/api/v1/generators", &served.admin, whole.len() + 1)).await;
    short.send(whole).await;
    short.0.shutdown().await.unwrap();
    in_time(async {
        let mut rest = Vec::new();
        // Refused or hung up on: only what was done counts.
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut short.0, &mut rest).await;
        assert!(!String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 2"));
    })
    .await;
    let (status, body) = served.ask(&get("/api/v1/generators", &served.admin)).await;
    assert_eq!((status, body.as_str()), (200, "[]"));
}

#[tokio::test]
async fn a_head_that_is_too_large_or_has_too_many_lines_is_refused() {
    let served = Served::new(Limits::default()).await;
    let large = format!("GET /healthz HTTP/1.1\r\nhost: b\r\nx-a: {}\r\n\r\n", "a".repeat(17 * 1024));
    assert_eq!(served.ask(&large).await.0, 431);
    let many = format!("GET /healthz HTTP/1.1\r\nhost: b\r\n{}\r\n", "x-a: a\r\n".repeat(101));
    assert_eq!(served.ask(&many).await.0, 431);
    assert_eq!(served.ask("nonsense\r\n\r\n").await.0, 400);
}

#[tokio::test]
async fn a_peer_that_takes_no_answer_is_cut_off() {
    let served = Served::new(Limits { stall_time_max: SHORT, ..Limits::default() }).await;
    let (_, made) = ask_json(&served, "/api/v1/generators", "{\"name\": \"shop\"}").await;
    let stack = format!("{{\"name\": \"web\", \"generator_id\": {}}}", made["generator"]["id"]);
    let (_, stack) = ask_json(&served, "/api/v1/stacks", &stack).await;
    let path = format!("/api/v1/stacks/{}/deployment-objects", stack["id"].as_str().unwrap());
    let bundle = format!("{BUNDLE}data: {{a: {}}}\n", "a".repeat(1024 * 1024));
    let bundle = serde_json::json!({"yaml_content": bundle}).to_string();
    assert_eq!(ask_json(&served, &path, &bundle).await.0, 201);
    let mut deaf = served.peer().await;
    deaf.send(&get(&path, &served.admin).repeat(50)).await;
    let mut ticks = interval(DRIP);
    in_time(async {
        while deaf.0.write_all(b"G").await.is_ok() {
            ticks.tick().await;
        }
    })
    .await;
}

async fn ask_json(served: &Served, path: &str, body: &str) -> (u16, serde_json::Value) {
    let request = format!("{}{body}", post(path, &served.admin, body.len()));
    let (status, body) = served.ask(&request).await;
    (status, serde_json::from_str(&body).unwrap())
}

#[tokio::test]
async fn at_the_limit_a_connection_waits_until_another_ends() {
    let served = Served::new(Limits { connections_max: 2, ..Limits::default() }).await;
    let mut first = served.peer().await;
    let mut second = served.peer().await;
    for peer in [&mut first, &mut second] {
        peer.send(HEALTH).await;
        assert_eq!(peer.answer().await.0, 200);
    }
    let mut third = served.peer().await;
    third.send(HEALTH).await;
    let early = tokio::time::timeout(SHORT, third.answer()).await;
    assert!(early.is_err(), "no room for a third");
    drop(first);
    assert_eq!(third.answer().await.0, 200);
}

#[tokio::test]
async fn at_the_end_idle_connections_close_at_once_and_a_request_under_way_is_finished() {
    let mut served = Served::new(Limits::default()).await;
    let mut idle = served.peer().await;
    idle.send(HEALTH).await;
    assert_eq!(idle.answer().await.0, 200);
    let (body, mut busy) = ("{\"name\": \"shop\"}", served.peer().await);
    let (begun, rest) = body.split_at(5);
    busy.send(&format!("{}{begun}", post("/api/v1/generators", &served.admin, body.len()))).await;
    // Answered after the head above was sent, so the broker has seen that head too.
    assert_eq!(served.ask(HEALTH).await.0, 200);
    served.stop();
    idle.closed().await;
    busy.send(rest).await;
    assert_eq!(busy.answer().await.0, 201);
    busy.closed().await;
    served.ended().await;
}

#[tokio::test]
async fn at_the_end_a_request_that_does_not_finish_is_cut_off() {
    let mut served = Served::new(Limits { shutdown_time_max: SHORT, ..Limits::default() }).await;
    let mut busy = served.peer().await;
    busy.send(&post("/api/v1/generators", &served.admin, 100)).await;
    assert_eq!(served.ask(HEALTH).await.0, 200);
    served.stop();
    served.ended().await;
    busy.closed().await;
}

#[tokio::test]
async fn requests_are_counted_by_the_template_of_their_route() {
    let served = Served::new(Limits::default()).await;
    let paths = ["/api/v1/agents/1", "/api/v1/agents/2", "/nowhere/1", "/nowhere/2"];
    for path in paths {
        served.ask(&get(path, &served.admin)).await;
    }
    served.ask(&get("/api/v1/agents", "nobody")).await;
    let (status, metrics) = served.ask(&get("/metrics", "-")).await;
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
async fn wrong_keys_from_one_address_are_slowed_down_and_right_ones_are_not() {
    let served = Served::new(Limits::default()).await;
    let (status, made) = ask_json(&served, "/api/v1/generators", "{\"name\": \"shop\"}").await;
    assert_eq!(status, 201);
    let fresh = made["pak"].as_str().unwrap();
    let guess = get("/api/v1/stacks", &format!("{}x", served.admin));
    for _ in 0..10 {
        assert_eq!(served.ask(&guess).await.0, 401);
    }
    let mut peer = served.peer().await;
    peer.send(&guess).await;
    let head = peer.head().await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    assert!((1..=61).contains(&header(&head, "retry-after").unwrap().parse().unwrap()), "{head}");
    let (status, body) = served.ask(&get("/api/v1/stacks", "nonsense")).await;
    assert_eq!((status, code(&body).as_str()), (429, "too_many_failures"));
    assert_eq!(served.ask(&get("/api/v1/stacks", &served.admin)).await.0, 200);
    assert_eq!(served.ask(&get("/api/v1/stacks", fresh)).await.0, 200, "a key that is used for the first time");
    assert_eq!(served.ask(HEALTH).await.0, 200);
    let (_, metrics) = served.ask(&get("/metrics", "-")).await;
    assert!(metrics.contains("sindri_throttled_keys_total 2"), "{metrics}");
}
