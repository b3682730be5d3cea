//! The HTTP server over in-memory streams, in a runtime with timers and without sockets. Tests move the clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sindri_apiserver::{Admission, ApiServer, Clock, Fault, Gate, Listener, Request, SharedServer, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use crate::harness::{CONFIG_MAPS, config_map};

/// Accepts the streams that a test puts into a channel.
struct Streams(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for Streams {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> DuplexStream {
        match self.0.recv().await {
            Some(stream) => stream,
            None => std::future::pending().await,
        }
    }
}

/// A gate that admits every request in the same way.
struct ConstantGate(Mutex<Admission>);

impl Gate for ConstantGate {
    fn admit(&self, _now: Timestamp, _request: &Request) -> Admission {
        self.0.lock().expect("not poisoned").clone()
    }
}

struct Front {
    connect: mpsc::UnboundedSender<DuplexStream>,
    server: SharedServer,
    gate: Arc<ConstantGate>,
    now: Arc<Mutex<Timestamp>>,
}

impl Front {
    /// Advances the clock. Waiting tasks notice it at the next change.
    fn advance(&self, seconds: i64) {
        *self.now.lock().expect("not poisoned") += SignedDuration::from_secs(seconds);
    }

    /// Sends one request on a new connection and reads until the server closes it.
    async fn exchange(&self, head: &str, body: &str) -> String {
        let mut stream = self.open(head, body).await;
        let mut response = String::new();
        stream.read_to_string(&mut response).await.expect("a text");
        response
    }

    async fn open(&self, head: &str, body: &str) -> DuplexStream {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        self.connect.send(server).expect("the server accepts");
        let text = format!(
            "{head}\r\nhost: sim\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(text.as_bytes()).await.expect("the server reads");
        client
    }
}

/// Runs a test against a server.
fn with_front<T: Future<Output = ()>>(test: impl FnOnce(Front) -> T) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a valid time");
        let now = Arc::new(Mutex::new(start));
        let clock: Clock = {
            let now = now.clone();
            Arc::new(move || *now.lock().expect("not poisoned"))
        };
        let server = SharedServer::new(ApiServer::new(1, start));
        let (connect, streams) = mpsc::unbounded_channel();
        let gate = Arc::new(ConstantGate(Mutex::new(Admission::default())));
        let front = Front { connect, server: server.clone(), gate: gate.clone(), now };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = serve(Streams(streams), server.clone(), clock, gate, async {
            let _stopped = stopped.await;
        });
        let testing = async {
            test(front).await;
            drop(stop);
        };
        tokio::join!(serving, testing);
        assert_eq!(server.with(|machine| machine.watch_count()), 0, "no watch outlives the server");
    });
}

#[test]
fn requests_are_answered() {
    with_front(|front| async move {
        let response = front.exchange("GET /version HTTP/1.1", "").await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        let body = config_map("a", &json!({})).to_string();
        let response = front.exchange(&format!("POST {CONFIG_MAPS} HTTP/1.1"), &body).await;
        assert!(response.starts_with("HTTP/1.1 201 Created\r\n"), "{response}");
    });
}

#[test]
fn faults_delay_requests_lose_responses_and_cut_connections() {
    with_front(|front| async move {
        let body = config_map("a", &json!({})).to_string();
        let head = format!("POST {CONFIG_MAPS} HTTP/1.1");
        let set = |admission: Admission| *front.gate.0.lock().expect("not poisoned") = admission;
        let exists = || front.server.with(|machine| machine.get("", "configmaps", Some("default"), "a").is_some());
        set(Admission { delay: Duration::from_millis(20), fault: Some(Fault::CutBeforeCommit) });
        let before = tokio::time::Instant::now();
        assert_eq!(front.exchange(&head, &body).await, "");
        assert!(before.elapsed() >= Duration::from_millis(20), "the request was delayed");
        assert!(!exists());
        set(Admission { delay: Duration::ZERO, fault: Some(Fault::LoseResponse) });
        assert_eq!((front.exchange(&head, &body).await.as_str(), exists()), ("", true));
        set(Admission { delay: Duration::ZERO, fault: Some(Fault::Refuse { status: 429, retry_after_secs: Some(1) }) });
        let response = front.exchange(&head, &body).await;
        assert!(response.starts_with("HTTP/1.1 429") && response.contains("retry-after: 1\r\n"), "{response}");
    });
}

#[test]
fn a_body_above_the_limit_is_413() {
    with_front(|front| async move {
        let body = " ".repeat(3 * 1024 * 1024 + 1);
        let (mut client, server) = tokio::io::duplex(8 * 1024 * 1024);
        front.connect.send(server).expect("the server accepts");
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all(head.as_bytes()).await.expect("the server reads");
        client.write_all(body.as_bytes()).await.expect("the server reads");
        let mut response = String::new();
        client.read_to_string(&mut response).await.expect("a text");
        assert!(response.starts_with("HTTP/1.1 413"), "{response}");
        assert!(response.contains("Request entity too large: limit is 3145728"), "{response}");
    });
}

#[test]
fn watches_stream_changes_and_end_at_their_timeout() {
    with_front(|front| async move {
        let head = format!("GET {CONFIG_MAPS}?watch=true&timeoutSeconds=30 HTTP/1.1");
        let mut watch = front.open(&head, "").await;
        let mut seen = String::new();
        while !seen.contains("\r\n\r\n") {
            let mut buffer = [0; 4096];
            let count = watch.read(&mut buffer).await.expect("the head of the response");
            assert_ne!(count, 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let body = config_map("a", &json!({})).to_string();
        front.exchange(&format!("POST {CONFIG_MAPS} HTTP/1.1"), &body).await;
        // The clock is only read at the next change.
        front.advance(31);
        front.exchange(&format!("POST {CONFIG_MAPS} HTTP/1.1"), &body.replace("\"a\"", "\"b\"")).await;
        let mut rest = String::new();
        watch.read_to_string(&mut rest).await.expect("a text");
        for name in ["a", "b", "kube-root-ca.crt"] {
            assert!(rest.contains(&format!("\"name\":\"{name}\"")), "{name} is not in {rest}");
        }
    });
}

#[test]
fn a_watch_is_closed_when_its_client_disconnects() {
    with_front(|front| async move {
        let watch = front.open(&format!("GET {CONFIG_MAPS}?watch=true HTTP/1.1"), "").await;
        let open = || front.server.with(|machine| machine.watch_count());
        for _ in 0..100 {
            if open() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(open(), 1);
        drop(watch);
        for _ in 0..100 {
            if open() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(open(), 0);
    });
}
