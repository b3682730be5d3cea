//! A broker in process, with one generator, one agent and one stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_broker::{
    Bounds, Broker, EncryptionKey, Quotas, RunOnThread, Sender, SqliteStore, TargetPolicy, WebhookSettings, router,
    system_connector,
};
use sindri_model::{Clock, Entropy, Pak};
use tower::ServiceExt;

pub const BUNDLE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";

/// Returns entropy with different bytes at each call and the same in each run.
pub fn counting_entropy() -> Entropy {
    let calls = Arc::new(AtomicU64::new(1));
    Entropy::new(move |bytes| {
        let mut state = calls.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    })
}

pub fn fixed_clock() -> Clock {
    Clock::new(|| Timestamp::from_second(1_700_000_000).unwrap())
}

/// Settings that allow webhooks to public addresses.
pub fn webhooks() -> WebhookSettings {
    let policy = TargetPolicy::default();
    let sender = Sender::new(system_connector(policy));
    WebhookSettings { key: EncryptionKey::parse(&"ab".repeat(32)).unwrap(), policy, sender }
}

pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl TestResponse {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// Checks the status and returns the response.
    pub fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.body);
        self
    }

    /// Checks the status and the shape of an error and returns its code.
    pub fn expect_error(self, status: u16) -> String {
        let problem = self.expect_status(status).json();
        let fields: Vec<_> = problem.as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, ["code", "message"]);
        assert!(!problem["message"].as_str().unwrap().is_empty());
        problem["code"].as_str().unwrap().to_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

pub struct Api {
    router: Router,
    pub admin: String,
}

impl Api {
    pub async fn new() -> Self {
        Self::open(":memory:", counting_entropy()).await
    }

    /// Opens a broker over a file. Its administrator's key is always the same.
    pub async fn open(path: &str, entropy: Entropy) -> Self {
        Self::with_clock(path, fixed_clock(), entropy).await
    }

    pub async fn with_clock(path: &str, clock: Clock, entropy: Entropy) -> Self {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let store = SqliteStore::open(path, None).unwrap();
        let broker = Broker::start(store, clock, entropy).await.unwrap();
        broker.create_admin_key(&admin).await.unwrap();
        let broker = broker.with_webhooks(webhooks()).with_reload(Arc::new(|_| Ok(Vec::new())));
        Self { router: router(broker), admin: admin.reveal() }
    }

    /// Starts a broker over a store.
    pub async fn on_store(store: SqliteStore) -> Self {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
        broker.create_admin_key(&admin).await.unwrap();
        Self { router: router(broker), admin: admin.reveal() }
    }

    /// Starts two brokers on one store. Neither follows the changes of the other.
    pub async fn two_on_one_store() -> [Self; 2] {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let (store, entropy) = (SqliteStore::open(":memory:", None).unwrap(), counting_entropy());
        let start = async || Broker::start(store.replica(), fixed_clock(), entropy.clone()).await.unwrap();
        let brokers = [start().await, start().await];
        brokers[0].create_admin_key(&admin).await.unwrap();
        brokers.map(|broker| Self { router: router(broker), admin: admin.reveal() })
    }

    /// Starts a broker whose generators have quotas.
    pub async fn with_quotas(quotas: Quotas) -> Self {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let store = SqliteStore::open(":memory:", None).unwrap();
        let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
        broker.create_admin_key(&admin).await.unwrap();
        Self { router: router(broker.with_quotas(quotas)), admin: admin.reveal() }
    }

    /// Starts a broker that runs long computations with this function.
    pub async fn with_threads(run: RunOnThread) -> Self {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let store = SqliteStore::open(":memory:", None).unwrap();
        let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
        broker.create_admin_key(&admin).await.unwrap();
        Self { router: router(broker.with_threads(run)), admin: admin.reveal() }
    }

    /// Starts a broker whose polls never wait, with or without webhooks.
    pub async fn without_waiting(webhooks: Option<WebhookSettings>) -> Self {
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let store = SqliteStore::open(":memory:", None).unwrap();
        let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
        broker.create_admin_key(&admin).await.unwrap();
        let broker = broker
            .with_bounds(Bounds { wait_max: Duration::ZERO, ..Bounds::default() })
            .with_reload(Arc::new(|_| Ok(Vec::new())));
        let broker = match webhooks {
            Some(webhooks) => broker.with_webhooks(webhooks),
            None => broker,
        };
        Self { router: router(broker), admin: admin.reveal() }
    }

    pub async fn send(&self, request: Request<Body>) -> TestResponse {
        let (head, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        TestResponse { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
    }

    pub async fn call(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> TestResponse {
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = format!("/api/v1{path}").parse().unwrap();
        if !key.is_empty() {
            request.headers_mut().insert("authorization", key.parse().unwrap());
        }
        self.send(request).await
    }

    pub async fn get(&self, key: &str, path: &str) -> TestResponse {
        self.call(key, Method::GET, path, None).await
    }

    pub async fn post(&self, key: &str, path: &str, body: &Value) -> TestResponse {
        self.call(key, Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, key: &str, path: &str, body: &Value) -> TestResponse {
        self.call(key, Method::PUT, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> TestResponse {
        self.call(&self.admin, Method::DELETE, path, None).await
    }

    /// Creates an administrator and returns its id and key.
    pub async fn create_admin(&self, name: &str, role: &str) -> (String, String) {
        let request = json!({"name": name, "role": role});
        let created = self.post(&self.admin, "/admins", &request).await.expect_status(201).json();
        (text(&created["admin"]["id"]), text(&created["pak"]))
    }

    /// Creates a generator and returns its id and key.
    pub async fn create_generator(&self, name: &str) -> (String, String) {
        let created = self.post(&self.admin, "/generators", &json!({"name": name})).await.expect_status(201).json();
        (text(&created["generator"]["id"]), text(&created["pak"]))
    }

    /// Creates an agent that is registered with these generators and returns its id and key.
    pub async fn create_agent(&self, name: &str, generators: &[&str]) -> (String, String) {
        let request = json!({"name": name, "cluster_name": "c", "generator_ids": generators});
        let created = self.post(&self.admin, "/agents", &request).await.expect_status(201).json();
        (text(&created["agent"]["id"]), text(&created["initial_pak"]))
    }

    pub async fn create_stack(&self, name: &str, generator: &str) -> String {
        let request = json!({"name": name, "generator_id": generator});
        text(&self.post(&self.admin, "/stacks", &request).await.expect_status(201).json()["id"])
    }

    pub async fn submit(&self, stack: &str, is_deletion_marker: bool) -> Value {
        let request = json!({"yaml_content": BUNDLE, "is_deletion_marker": is_deletion_marker});
        self.post(&self.admin, &format!("/stacks/{stack}/deployment-objects"), &request).await.expect_status(201).json()
    }

    /// Creates a subscription to all event types; with labels, agents with one of them deliver.
    pub async fn create_webhook(&self, name: &str, labels: &[&str]) -> String {
        let request = json!({
            "name": name, "url": "https://hooks.example.com/secret-path", "event_types": ["*"], "target_labels": labels,
        });
        text(&self.post(&self.admin, "/webhooks", &request).await.expect_status(201).json()["id"])
    }

    /// Returns the number of entries in the audit log.
    pub async fn count_audit_entries(&self) -> i64 {
        let logs = self.get(&self.admin, "/admin/audit-logs?limit=1").await.expect_status(200).json();
        logs["total"].as_i64().unwrap()
    }

    pub async fn target(&self, agent: &str, stack: &str) {
        let request = json!({"agent_id": agent, "stack_id": stack});
        self.post(&self.admin, &format!("/agents/{agent}/targets"), &request).await.expect_status(201);
    }

    pub async fn untarget(&self, agent: &str, stack: &str) {
        self.delete(&format!("/agents/{agent}/targets/{stack}")).await.expect_status(204);
    }

    /// Returns the target state of an agent.
    pub async fn poll(&self, agent: &(String, String)) -> Vec<Value> {
        let response = self.get(&agent.1, &format!("/agents/{}/target-state", agent.0)).await.expect_status(200);
        response.json().as_array().unwrap().clone()
    }

    pub async fn report(&self, agent: &(String, String), revision: &Value, status: &str) {
        let event = event(&agent.0, &text(&revision["id"]), status);
        self.post(&agent.1, &format!("/agents/{}/events", agent.0), &event).await.expect_status(201);
    }
}

pub fn event(agent: &str, revision: &str, status: &str) -> Value {
    json!({"agent_id": agent, "deployment_object_id": revision, "event_type": "DEPLOY", "status": status})
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A broker with one generator, agent and stack.
pub struct Fleet {
    pub api: Api,
    pub generator: (String, String),
    pub agent: (String, String),
    pub stack: String,
}

impl Fleet {
    /// Creates a fleet whose stack has no revision and is targeted at the agent.
    pub async fn new() -> Self {
        let api = Api::new().await;
        let generator = api.create_generator("shop").await;
        let agent = api.create_agent("east", &[&generator.0]).await;
        let stack = api.create_stack("web", &generator.0).await;
        api.target(&agent.0, &stack).await;
        Self { api, generator, agent, stack }
    }

    pub async fn poll(&self) -> Vec<Value> {
        self.api.poll(&self.agent).await
    }
}
