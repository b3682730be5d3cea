//! Invalid input: each error has its status and its code, and nothing is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};
use sindri_broker::BODY_BYTES_MAX;

use crate::support::{Api, BUNDLE, Fleet, TestResponse};

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

/// A broker whose state must not change.
struct Still {
    fleet: Fleet,
    before: Value,
}

impl Still {
    async fn new() -> Self {
        let fleet = Fleet::new().await;
        let before = stored(&fleet).await;
        Self { fleet, before }
    }

    async fn send(&self, method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> TestResponse {
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = format!("/api/v1{path}").parse().unwrap();
        request.headers_mut().insert("authorization", self.fleet.api.admin.parse().unwrap());
        if !content_type.is_empty() {
            request.headers_mut().insert("content-type", content_type.parse().unwrap());
        }
        self.fleet.api.send(request).await
    }

    async fn submit(&self, content_type: &str, body: impl Into<Body>) -> TestResponse {
        let path = format!("/stacks/{}/deployment-objects", self.fleet.stack);
        self.send(Method::POST, &path, content_type, body).await
    }

    async fn post(&self, path: &str, body: &Value) -> TestResponse {
        self.send(Method::POST, path, JSON, body.to_string()).await
    }

    async fn is_unchanged(&self) {
        assert_eq!(stored(&self.fleet).await, self.before);
    }
}

/// Returns everything that a request could have stored.
async fn stored(fleet: &Fleet) -> Value {
    let mut all = Vec::new();
    for path in [
        "/admin/audit-logs".to_owned(),
        "/agents".to_owned(),
        "/agent-events".to_owned(),
        "/generators".to_owned(),
        "/stacks".to_owned(),
        "/webhooks".to_owned(),
        format!("/agents/{}/labels", fleet.agent.0),
        format!("/agents/{}/annotations", fleet.agent.0),
        format!("/stacks/{}/labels", fleet.stack),
        format!("/stacks/{}/annotations", fleet.stack),
        format!("/stacks/{}/deployment-objects", fleet.stack),
        format!("/stacks/{}/health", fleet.stack),
    ] {
        all.push(fleet.api.get(&fleet.api.admin, &path).await.expect_status(200).json());
    }
    json!(all)
}

fn alias_bomb() -> String {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    text
}

#[tokio::test]
async fn a_bundle_beyond_the_limits_or_without_a_document_is_rejected() {
    let broker = Still::new().await;
    for (name, yaml) in [
        ("no document", "---\n# nothing\n".to_owned()),
        ("documents", "---\na: 1\n".repeat(10_001)),
        ("levels", format!("a: {}{}", "[".repeat(100), "]".repeat(100))),
        ("alias bomb", alias_bomb()),
        ("wide alias bomb", format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(100_000), "*a,".repeat(100))),
        ("NUL", format!("{BUNDLE}# \0\n")),
        ("not YAML", "a: [broken".to_owned()),
        ("a key twice", "a: 1\na: 2\n".to_owned()),
    ] {
        assert_eq!(broker.submit(YAML, yaml).await.expect_error(400), "invalid_deployment_object", "{name}");
    }
    assert_eq!(broker.submit(YAML, &b"a: \xff"[..]).await.expect_error(400), "invalid_deployment_object");
    for (yaml, code) in [("a: [\0]", "invalid_json"), ("", "invalid_deployment_object")] {
        let response = broker.submit(JSON, json!({"yaml_content": yaml}).to_string()).await;
        assert_eq!(response.expect_error(400), code, "{yaml:?}");
    }
    broker.is_unchanged().await;
}

#[tokio::test]
async fn a_bundle_at_the_limits_is_accepted() {
    let broker = Still::new().await;
    for yaml in [
        "---\na: 1\n".repeat(10_000),
        format!("{}{}", "[".repeat(64), "]".repeat(64)),
        "a: &a 1\nb: *a\n".to_owned(),
        // No NUL, but an escaped backslash before the same characters.
        "a: \"\\\\u0000\"".to_owned(),
    ] {
        broker.submit(YAML, yaml.clone()).await.expect_status(201);
        broker.submit(JSON, json!({"yaml_content": yaml}).to_string()).await.expect_status(201);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_rejected_by_every_route() {
    let broker = Still::new().await;
    let large = "x".repeat(BODY_BYTES_MAX + 1);
    assert_eq!(broker.submit(YAML, format!("# {large}")).await.expect_error(413), "body_too_large");
    let body = json!({"name": large}).to_string();
    assert_eq!(broker.send(Method::POST, "/generators", JSON, body).await.expect_error(413), "body_too_large");
    broker.is_unchanged().await;
}

#[tokio::test]
async fn an_unsupported_content_type_is_rejected() {
    let broker = Still::new().await;
    let body = json!({"name": "n"}).to_string();
    for content_type in
        ["text/plain", "application/yaml", "application/x-www-form-urlencoded", "json", "application/jsonp"]
    {
        let response = broker.send(Method::POST, "/generators", content_type, body.clone()).await;
        assert_eq!(response.expect_error(415), "unsupported_media_type", "{content_type}");
    }
    for content_type in ["text/html", "multipart/form-data", "application/octet-stream"] {
        assert_eq!(
            broker.submit(content_type, BUNDLE).await.expect_error(415),
            "unsupported_media_type",
            "{content_type}"
        );
    }
    broker.is_unchanged().await;
    for (name, content_type) in
        [("a", ""), ("b", "application/json; charset=utf-8"), ("c", "application/merge-patch+json")]
    {
        let body = json!({"name": name}).to_string();
        broker.send(Method::POST, "/generators", content_type, body).await.expect_status(201);
    }
}

#[tokio::test]
async fn invalid_json_is_rejected() {
    let broker = Still::new().await;
    let whole = json!({"name": "north", "cluster_name": "c"}).to_string();
    let cut = (1..whole.len()).map(|at| whole.as_bytes()[..at].to_vec());
    let wrong = [
        br#"{"name": "n", "name": "m", "cluster_name": "c"}"#.to_vec(),
        br#"{"name": "n", "cluster_name": 7}"#.to_vec(),
        br#"{"name": "n", "cluster_name": "c"} {}"#.to_vec(),
        b"{\"name\": \"\xff\", \"cluster_name\": \"c\"}".to_vec(),
        b"[".repeat(100_000),
        b"null".to_vec(),
    ];
    for body in cut.chain(wrong) {
        let shown = String::from_utf8_lossy(&body).chars().take(80).collect::<String>();
        let response = broker.send(Method::POST, "/agents", JSON, body).await;
        assert_eq!(response.expect_error(400), "invalid_json", "{shown}");
    }
    broker.is_unchanged().await;
}

#[tokio::test]
async fn names_labels_annotations_and_messages_have_limits_and_no_nul() {
    let broker = Still::new().await;
    let (agent, stack) = (&broker.fleet.agent.0, &broker.fleet.stack);
    let labels = |label: &str| (format!("/agents/{agent}/labels"), json!({"agent_id": agent, "label": label}));
    let annotation = |key: &str, value: &str| {
        (format!("/agents/{agent}/annotations"), json!({"agent_id": agent, "key": key, "value": value}))
    };
    let of_stack = |key: &str, value: &str| {
        (format!("/stacks/{stack}/annotations"), json!({"stack_id": stack, "key": key, "value": value}))
    };
    let event = json!({
        "agent_id": agent, "deployment_object_id": UNKNOWN_ID, "event_type": "DEPLOY", "status": "FAILURE",
        "message": "a\0b",
    });
    for ((path, body), code) in [
        (labels(""), "invalid_label"),
        (labels(&"x".repeat(65)), "invalid_label"),
        (labels("a b"), "invalid_label"),
        (labels("a\nb"), "invalid_label"),
        (labels("a\0b"), "invalid_json"),
        ((format!("/stacks/{stack}/labels"), json!("x".repeat(65))), "invalid_label"),
        ((format!("/stacks/{stack}/labels"), json!("a\tb")), "invalid_label"),
        ((format!("/stacks/{stack}/labels"), json!({"label": "a"})), "invalid_json"),
        (annotation("", "v"), "invalid_annotation"),
        (annotation(&"k".repeat(254), "v"), "invalid_annotation"),
        (annotation("k", &"v".repeat(4097)), "invalid_annotation"),
        (annotation("k", "\0"), "invalid_json"),
        (of_stack("a b", "v"), "invalid_annotation"),
        (of_stack("k", &"v".repeat(4097)), "invalid_annotation"),
        ((format!("/agents/{agent}/events"), event), "invalid_json"),
        (("/agents".to_owned(), json!({"name": "a\0", "cluster_name": "c"})), "invalid_json"),
        (("/generators".to_owned(), json!({"name": "x".repeat(256)})), "invalid_name"),
        (("/generators".to_owned(), json!({"name": "n", "description": "\0"})), "invalid_json"),
        ((format!("/agents/{agent}/labels"), json!({"agent_id": UNKNOWN_ID, "label": "a"})), "agent_id_mismatch"),
        (
            (format!("/stacks/{stack}/annotations"), json!({"stack_id": UNKNOWN_ID, "key": "k", "value": "v"})),
            "stack_id_mismatch",
        ),
    ] {
        assert_eq!(broker.post(&path, &body).await.expect_error(400), code, "{path} {body}");
    }
    broker.is_unchanged().await;
    broker.post(&labels(&"ü".repeat(64)).0, &labels(&"ü".repeat(64)).1).await.expect_status(201);
}

#[tokio::test]
async fn invalid_paths_and_queries_are_rejected() {
    let broker = Still::new().await;
    let (agent, stack) = (&broker.fleet.agent.0, &broker.fleet.stack);
    for (method, path, status, code) in [
        (Method::GET, "/agents?limit=-1".to_owned(), 400, "invalid_query"),
        (Method::GET, "/agents?limit=0".to_owned(), 400, "invalid_query"),
        (Method::GET, "/agents?limit=many".to_owned(), 400, "invalid_query"),
        (Method::GET, "/agents?limit=99999999999999999999".to_owned(), 400, "invalid_query"),
        (Method::GET, "/agents?after=unknown".to_owned(), 400, "invalid_query"),
        (Method::GET, "/agents/?name=%00&cluster_name=c".to_owned(), 400, "invalid_query"),
        (Method::GET, "/stacks?pak_id=x".to_owned(), 400, "invalid_query"),
        (Method::GET, "/admin/audit-logs?limit=-5".to_owned(), 400, "invalid_query"),
        (Method::GET, "/admin/audit-logs?offset=-1".to_owned(), 400, "invalid_query"),
        (Method::GET, "/admin/audit-logs?from=yesterday".to_owned(), 400, "invalid_query"),
        (Method::GET, "/admin/audit-logs?actor_id=%00".to_owned(), 400, "invalid_query"),
        (Method::GET, "/agents/not-a-uuid".to_owned(), 400, "invalid_id"),
        (Method::DELETE, format!("/agents/{agent}/labels/%00"), 400, "invalid_id"),
        (Method::DELETE, format!("/agents/{agent}/labels/%FF"), 400, "invalid_id"),
        (Method::DELETE, format!("/agents/{agent}/labels/absent"), 404, "agent_label_not_found"),
        (Method::DELETE, format!("/stacks/{stack}/annotations/absent"), 404, "stack_annotation_not_found"),
        (Method::GET, format!("/agents/{UNKNOWN_ID}"), 404, "agent_not_found"),
        (Method::GET, format!("/agents/{UNKNOWN_ID}/fleet-status"), 404, "agent_not_found"),
        (Method::GET, format!("/agents/{UNKNOWN_ID}/labels"), 404, "agent_not_found"),
        (Method::GET, format!("/agents/{UNKNOWN_ID}/webhooks/pending"), 404, "agent_not_found"),
        (Method::POST, format!("/agents/{UNKNOWN_ID}/rotate-pak"), 404, "agent_not_found"),
        (Method::POST, format!("/generators/{UNKNOWN_ID}/rotate-pak"), 404, "generator_not_found"),
        (Method::DELETE, format!("/generators/{UNKNOWN_ID}"), 404, "generator_not_found"),
        (Method::GET, format!("/stacks/{UNKNOWN_ID}/labels"), 404, "stack_not_found"),
        (Method::GET, format!("/stacks/{UNKNOWN_ID}/health"), 404, "stack_not_found"),
        (Method::GET, format!("/deployment-objects/{UNKNOWN_ID}/health"), 404, "deployment_object_not_found"),
        (Method::GET, format!("/stacks/{UNKNOWN_ID}/status"), 404, "stack_not_found"),
        (Method::GET, format!("/approvals/{UNKNOWN_ID}"), 404, "approval_not_found"),
        (Method::POST, format!("/approvals/{UNKNOWN_ID}/approve"), 404, "approval_not_found"),
        (Method::GET, format!("/webhooks/{UNKNOWN_ID}"), 404, "webhook_not_found"),
        (Method::GET, format!("/webhooks/{UNKNOWN_ID}/deliveries"), 404, "webhook_not_found"),
        (Method::POST, format!("/webhooks/{UNKNOWN_ID}/test"), 404, "webhook_not_found"),
        (Method::GET, "/nowhere".to_owned(), 404, "route_not_found"),
        (Method::GET, format!("/agents/{agent}/nowhere"), 404, "route_not_found"),
        (Method::PATCH, "/agents".to_owned(), 405, "method_not_allowed"),
        (Method::DELETE, format!("/agents/{agent}/target-state"), 405, "method_not_allowed"),
    ] {
        let response = broker.send(method.clone(), &path, "", Body::empty()).await;
        assert_eq!(response.expect_error(status), code, "{method} {path}");
    }
    broker.is_unchanged().await;
}

#[tokio::test]
async fn objects_of_other_owners_are_neither_read_nor_changed() {
    let broker = Still::new().await;
    let (api, stack) = (&broker.fleet.api, &broker.fleet.stack);
    let (generator, agent) = (api.create_generator("other").await, api.create_agent("other", &[]).await);
    let before = stored(&broker.fleet).await;
    for (key, method, path, body) in [
        (&generator.1, Method::GET, format!("/stacks/{stack}"), Value::Null),
        (&generator.1, Method::PUT, format!("/stacks/{stack}"), json!({"name": "mine"})),
        (&generator.1, Method::DELETE, format!("/stacks/{stack}"), Value::Null),
        (&generator.1, Method::POST, format!("/stacks/{stack}/labels"), json!("mine")),
        (&generator.1, Method::POST, format!("/stacks/{stack}/deployment-objects"), json!({"yaml_content": "a: 1"})),
        (&generator.1, Method::DELETE, format!("/generators/{}", broker.fleet.generator.0), Value::Null),
        (&generator.1, Method::POST, format!("/generators/{}/rotate-pak", broker.fleet.generator.0), Value::Null),
        (&agent.1, Method::GET, format!("/stacks/{stack}/labels"), Value::Null),
        (&agent.1, Method::GET, format!("/agents/{}/target-state", broker.fleet.agent.0), Value::Null),
        (&agent.1, Method::POST, format!("/agents/{}/rotate-pak", broker.fleet.agent.0), Value::Null),
        (&agent.1, Method::GET, format!("/agents/{}/webhooks/pending", broker.fleet.agent.0), Value::Null),
    ] {
        let body = Some(&body).filter(|body| !body.is_null());
        api.call(key, method.clone(), &path, body).await.expect_error(403);
    }
    assert_eq!(stored(&broker.fleet).await, before);
}

#[tokio::test]
async fn existing_objects_are_a_conflict() {
    let broker = Still::new().await;
    for (path, body) in [
        ("/agents", json!({"name": "east", "cluster_name": "c"})),
        ("/generators", json!({"name": "shop"})),
        ("/stacks", json!({"name": "web", "generator_id": broker.fleet.generator.0})),
    ] {
        assert_eq!(broker.post(path, &body).await.expect_error(409), "unique_violation");
    }
    broker.is_unchanged().await;
}

#[tokio::test]
async fn a_large_bundle_is_parsed_only_for_the_owner_of_the_stack() {
    let fleet = Fleet::new().await;
    let other = fleet.api.create_generator("other").await;
    let path = format!("/stacks/{}/deployment-objects", fleet.stack);
    // Rejected by the parser if it sees it.
    let hostile = json!({"yaml_content": "[".repeat(1024 * 1024)});
    fleet.api.post(&other.1, &path, &hostile).await.expect_error(403);
    let unknown = format!("/stacks/{}/deployment-objects", fleet.agent.0);
    assert_eq!(fleet.api.post(&other.1, &unknown, &hostile).await.expect_error(404), "stack_not_found");
    let owner = fleet.api.post(&fleet.generator.1, &path, &hostile).await;
    assert_eq!(owner.expect_error(400), "invalid_deployment_object");
}

#[tokio::test]
async fn a_large_json_body_is_parsed_on_another_thread_and_a_small_one_at_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let api = Api::with_threads(Arc::new(move |work| {
        counter.fetch_add(1, Ordering::SeqCst);
        work();
    }))
    .await;
    api.post(&api.admin, "/generators", &json!({"name": "small"})).await.expect_status(201);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    api.post(&api.admin, "/generators", &json!({"name": "x".repeat(64 * 1024)})).await.expect_status(400);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
