//! Webhooks that the broker delivers to a real receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use http_body_util::BodyExt;
use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};
use sindri_broker::{
    Broker, EncryptionKey, Sender, SqliteStore, TargetPolicy, WebhookSettings, router, serve, system_connector,
};
use sindri_model::{Clock, Entropy, Pak};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::support::{counting_entropy, text};
use crate::test_server::{header, with_timeout};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const START: i64 = 1_700_000_000;

/// A broker with a settable clock, and its receiver.
struct DeliveringBroker {
    router: Router,
    admin: String,
    second: Arc<AtomicI64>,
    received: mpsc::Receiver<(String, String)>,
    receiver: String,
    _tasks: JoinSet<()>,
}

impl DeliveringBroker {
    /// Starts a receiver that responds with these statuses in order, and then always with the last one.
    async fn new(statuses: &'static [u16]) -> Self {
        let second = Arc::new(AtomicI64::new(START));
        let now = second.clone();
        let clock = Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap());
        let store = SqliteStore::open(":memory:", None).unwrap();
        let policy = TargetPolicy { allow_http: true, allow_private: true };
        let key = EncryptionKey::parse(&"ab".repeat(32)).unwrap();
        let settings = WebhookSettings { key, policy, sender: Sender::new(system_connector(policy)) };
        let broker = Broker::start(store, clock, counting_entropy()).await.unwrap().with_webhooks(settings);
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        broker.create_admin_key(&admin).await.unwrap();
        let (listener, hook) = (bound().await, bound().await);
        let (sender, received) = mpsc::channel(64);
        let (router, receiver) = (router(broker.clone()), format!("http://{}/hook", hook.local_addr().unwrap()));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { serve(listener, broker, std::future::pending()).await.unwrap() });
        tasks.spawn(receive(hook, statuses, sender));
        Self { router, admin: admin.reveal(), second, received, receiver, _tasks: tasks }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        let request = request.header("authorization", &self.admin).body(Body::from(body.to_string())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    async fn subscribe(&self, max_retries: i64) -> String {
        let request = json!({
            "name": "hook", "url": self.receiver, "auth_header": "Bearer abc", "event_types": ["stack.created"],
            "max_retries": max_retries, "signing_secret": SECRET,
        });
        text(&self.send(Method::POST, "/webhooks", &request).await["id"])
    }

    /// Adds a subscription whose receiver accepts connections and never responds.
    async fn subscribe_silent(&mut self) {
        let listener = bound().await;
        let url = format!("http://{}/silent", listener.local_addr().unwrap());
        let request = json!({"name": "silent", "url": url, "event_types": ["stack.created"], "timeout_seconds": 30});
        self.send(Method::POST, "/webhooks", &request).await;
        self._tasks.spawn(async move {
            let mut open = Vec::new();
            loop {
                open.push(listener.accept().await.unwrap());
            }
        });
    }

    async fn generator(&self) -> String {
        text(&self.send(Method::POST, "/generators", &json!({"name": "shop"})).await["generator"]["id"])
    }

    async fn make_stack(&self, generator: &str, name: &str) {
        self.send(Method::POST, "/stacks", &json!({"name": name, "generator_id": generator})).await;
    }

    async fn next(&mut self) -> (String, Value) {
        let (head, body) = with_timeout(self.received.recv()).await.unwrap();
        (head, serde_json::from_str(&body).unwrap())
    }

    /// Waits until the oldest delivery of a subscription has this status, and returns it.
    async fn oldest_with(&self, webhook: &str, status: &str) -> Value {
        with_timeout(async {
            loop {
                let history = self.send(Method::GET, &format!("/webhooks/{webhook}/deliveries"), &json!({})).await;
                let oldest = history.as_array().unwrap().last().unwrap().clone();
                if oldest["status"] == status {
                    return oldest;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

async fn bound() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn receive(listener: TcpListener, statuses: &'static [u16], received: mpsc::Sender<(String, String)>) {
    for status in statuses.iter().chain(std::iter::repeat(statuses.last().unwrap())) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let message = read(&mut stream).await;
        let response = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(response.as_bytes()).await.unwrap();
        received.send(message).await.unwrap();
    }
}

async fn read(stream: &mut TcpStream) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let mut body = vec![0; header(&head, "content-length").unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn a_message_is_signed_and_retried_until_it_is_accepted() {
    let mut sending = DeliveringBroker::new(&[500, 200]).await;
    let (webhook, generator) = (sending.subscribe(5).await, sending.generator().await);
    sending.make_stack(&generator, "first").await;
    let (head, first) = sending.next().await;
    assert_eq!((&first["event_type"], &first["data"]["name"]), (&json!("stack.created"), &json!("first")));
    assert_eq!(header(&head, "authorization"), Some("Bearer abc"));
    let failed = sending.oldest_with(&webhook, "failed").await;
    assert_eq!(
        (&failed["attempts"], &failed["last_error"]),
        (&json!(1), &json!("the receiver responded with status 500"))
    );
    // The pause has passed; another message makes the broker check for due deliveries.
    sending.second.fetch_add(10, Ordering::SeqCst);
    sending.make_stack(&generator, "second").await;
    let (one, two) = (sending.next().await, sending.next().await);
    let again = if one.1["data"]["name"] == "first" { one } else { two };
    assert_eq!(again.1, first);
    assert_eq!(header(&again.0, "webhook-id"), header(&head, "webhook-id"), "a receiver can tell the repetition");
    let done = sending.oldest_with(&webhook, "success").await;
    assert_eq!(done["attempts"], json!(2));
}

#[tokio::test]
async fn the_signature_is_valid_for_the_secret() {
    let mut sending = DeliveringBroker::new(&[200]).await;
    let (_, generator) = (sending.subscribe(5).await, sending.generator().await);
    sending.make_stack(&generator, "web").await;
    let (head, body) = with_timeout(sending.received.recv()).await.unwrap();
    let secret = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let (id, at) = (header(&head, "webhook-id").unwrap(), header(&head, "webhook-timestamp").unwrap());
    assert_eq!(at, START.to_string());
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), format!("{id}.{at}.{body}").as_bytes());
    assert_eq!(header(&head, "webhook-signature"), Some(format!("v1,{}", STANDARD.encode(tag)).as_str()));
}

#[tokio::test]
async fn a_message_that_is_never_accepted_is_dead_after_its_last_attempt() {
    let mut sending = DeliveringBroker::new(&[302]).await;
    let (webhook, generator) = (sending.subscribe(0).await, sending.generator().await);
    sending.make_stack(&generator, "web").await;
    sending.next().await;
    let dead = sending.oldest_with(&webhook, "dead").await;
    assert!(text(&dead["last_error"]).contains("redirects are not followed"), "{dead}");
    assert!(!dead.to_string().contains("/hook"), "{dead}");
}

#[tokio::test]
async fn a_receiver_that_does_not_respond_delays_no_other() {
    const MESSAGES: usize = 40;
    let mut sending = DeliveringBroker::new(&[200]).await;
    sending.subscribe_silent().await;
    let (_, generator) = (sending.subscribe(5).await, sending.generator().await);
    for number in 0..MESSAGES {
        sending.make_stack(&generator, &format!("stack-{number}")).await;
        sending.next().await;
    }
}

#[tokio::test]
async fn the_signing_secret_can_be_changed() {
    let mut sending = DeliveringBroker::new(&[200]).await;
    let (webhook, generator) = (sending.subscribe(5).await, sending.generator().await);
    let secret = "whsec_b3RoZXIgc2VjcmV0IHRoYXQgaXMgbG9uZyBlbm91Z2g=";
    sending.send(Method::PUT, &format!("/webhooks/{webhook}"), &json!({"signing_secret": secret})).await;
    sending.make_stack(&generator, "web").await;
    let (head, body) = with_timeout(sending.received.recv()).await.unwrap();
    let secret = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let (id, at) = (header(&head, "webhook-id").unwrap(), header(&head, "webhook-timestamp").unwrap());
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), format!("{id}.{at}.{body}").as_bytes());
    assert_eq!(header(&head, "webhook-signature"), Some(format!("v1,{}", STANDARD.encode(tag)).as_str()));
}
