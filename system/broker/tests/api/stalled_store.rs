//! A store that does not respond: operations that work without it, and the readiness probe.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::json;
use sindri_broker::{Broker, SqliteStore, Store, router};
use sindri_model::{Entropy, Pak, Sequence};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::support::{Api, BUNDLE, TestResponse, counting_entropy, fixed_clock, text};

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

/// Sends a request with an idempotency key, or without one.
async fn post(api: &Api, path: &str, idempotency_key: Option<&str>, body: &serde_json::Value) -> TestResponse {
    let mut request = Request::post(format!("/api/v1{path}")).header("authorization", &api.admin);
    if let Some(key) = idempotency_key {
        request = request.header("idempotency-key", key);
    }
    api.send(request.body(Body::from(body.to_string())).unwrap()).await
}

/// Waits for the time limit of calls, because the worker has no other clock than the machine's.
#[tokio::test]
async fn a_request_that_was_answered_503_was_not_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let (store, worker) =
        SqliteStore::open_with_worker(&directory.path().join("sindri.db").display().to_string()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn_blocking(move || worker.run());
    let other = store.replica();
    let api = Arc::new(Api::on_store(store).await);
    let (generator, _) = api.create_generator("shop").await;
    let stack = api.create_stack("web", &generator).await;
    let revisions = format!("/stacks/{stack}/deployment-objects");
    api.submit(&stack, false).await;
    let (release, released) = mpsc::channel::<()>();
    let stall = other.rewrite_bundles(
        Sequence::default(),
        1,
        Box::new(move |_, _| {
            let _ = released.recv();
            Ok(None)
        }),
    );
    let bundle = json!({"yaml_content": BUNDLE, "is_deletion_marker": false});
    let changes = [
        ("/generators".to_owned(), json!({"name": "late"})),
        ("/stacks".to_owned(), json!({"name": "late", "generator_id": generator})),
        (revisions.clone(), bundle.clone()),
    ];
    let requests = async {
        let sent = changes.iter().flat_map(|(path, body)| [None, Some("key")].map(|key| post(&api, path, key, body)));
        let responses = futures_util::future::join_all(sent).await;
        release.send(()).unwrap();
        responses
    };
    let (_, responses) = tokio::join!(stall, requests);
    for response in responses {
        assert_eq!(response.expect_error(503), "store_unavailable");
    }
    let count = async |path: &str| api.get(&api.admin, path).await.expect_status(200).json().as_array().unwrap().len();
    assert_eq!([count("/generators").await, count("/stacks").await, count(&revisions).await], [1, 1, 1]);
    let retry = async || text(&post(&api, &revisions, Some("key"), &bundle).await.expect_status(201).json()["id"]);
    assert_eq!(retry().await, retry().await);
    assert_eq!(count(&revisions).await, 2);
    let other_request = json!({"yaml_content": BUNDLE, "is_deletion_marker": true});
    let refused = post(&api, &revisions, Some("key"), &other_request).await;
    assert_eq!(refused.expect_error(422), "idempotency_key_mismatch");
}
