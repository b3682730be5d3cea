//! A store that does not respond: operations that work without it, and the readiness probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::json;
use sindri_broker::{Broker, SqliteStore, router};
use sindri_model::{Entropy, Pak};
use tower::ServiceExt;

use crate::support::{counting_entropy, fixed_clock, text};

struct StallableBroker {
    router: Router,
    admin: String,
    is_stalled: Arc<AtomicBool>,
}

impl StallableBroker {
    async fn new() -> Self {
        let is_stalled = Arc::new(AtomicBool::new(false));
        let gate = is_stalled.clone();
        let store = SqliteStore::open(":memory:", None).unwrap().gated(Arc::new(move || {
            let is_stalled = gate.load(Ordering::SeqCst);
            Box::pin(async move {
                if is_stalled {
                    std::future::pending::<()>().await;
                }
            })
        }));
        let broker = Broker::start(store, fixed_clock(), counting_entropy()).await.unwrap();
        let admin = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        broker.create_admin_key(&admin).await.unwrap();
        Self { router: router(broker), admin: admin.reveal(), is_stalled }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: Option<serde_json::Value>,
        etag: &str,
    ) -> http::Response<Body> {
        let request =
            Request::builder().method(method).uri(path).header("authorization", key).header("if-none-match", etag);
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap()
    }
}

async fn read_json(response: http::Response<Body>) -> serde_json::Value {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn idle_polls_heartbeats_and_liveness_make_no_query() {
    let broker = StallableBroker::new().await;
    let request = json!({"name": "east", "cluster_name": "c"});
    let created = broker.send(Method::POST, "/api/v1/agents", &broker.admin, Some(request), "").await;
    let created = read_json(created).await;
    let (agent, key) = (text(&created["agent"]["id"]), text(&created["initial_pak"]));
    let poll = format!("/api/v1/agents/{agent}/target-state");
    let first = broker.send(Method::GET, &poll, &key, None, "").await;
    assert_eq!(first.status(), StatusCode::OK);
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    broker.is_stalled.store(true, Ordering::SeqCst);
    assert_eq!(broker.send(Method::GET, &poll, &key, None, &etag).await.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(broker.send(Method::GET, &poll, &key, None, "").await.status(), StatusCode::OK, "from memory");
    let beat = broker.send(Method::POST, &format!("/api/v1/agents/{agent}/heartbeat"), &key, Some(json!({})), "").await;
    assert_eq!(beat.status(), StatusCode::NO_CONTENT);
    assert_eq!(beat.headers()["sindri-agent-status"], "INACTIVE");
    assert_eq!(broker.send(Method::GET, "/healthz", "", None, "").await.status(), StatusCode::OK);
    assert_eq!(broker.send(Method::GET, "/readyz", "", None, "").await.status(), StatusCode::SERVICE_UNAVAILABLE);
}
