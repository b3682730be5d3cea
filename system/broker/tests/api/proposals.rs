//! Proposals: texts for stacks that are not submitted, and the plans of agents for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::Body;
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_broker::{Limits, SqliteStore};
use sindri_model::Clock;

use crate::support::{Api, BUNDLE, Fleet, TestResponse, counting_entropy, text};
use crate::test_server::{RawConnection, TestServer, header};

async fn propose(api: &Api, key: &str, stack: &str) -> TestResponse {
    api.post(key, &format!("/stacks/{stack}/proposals"), &json!({"yaml_content": BUNDLE})).await
}

async fn read(api: &Api, key: &str, proposal: &Value) -> TestResponse {
    api.get(key, &format!("/stacks/{}/proposals/{}", text(&proposal["stack_id"]), text(&proposal["id"]))).await
}

async fn list(api: &Api, agent: &(String, String)) -> Vec<Value> {
    let listed = api.get(&agent.1, &format!("/agents/{}/proposals", agent.0)).await.expect_status(200);
    listed.json().as_array().unwrap().clone()
}

async fn report(api: &Api, agent: &(String, String), proposal: &Value, body: &Value) -> TestResponse {
    api.put(&agent.1, &format!("/agents/{}/proposals/{}/plan", agent.0, text(&proposal["id"])), body).await
}

async fn activate(api: &Api, agent: &str) {
    api.put(&api.admin, &format!("/agents/{agent}"), &json!({"status": "ACTIVE"})).await.expect_status(200);
}

async fn poll(fleet: &Fleet, headers: &[(&str, &str)]) -> TestResponse {
    let mut request =
        Request::get(format!("/api/v1/agents/{}/target-state", fleet.agent.0)).header("authorization", &fleet.agent.1);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    fleet.api.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn an_agent_plans_a_proposal_that_changes_nothing_else() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    activate(api, &fleet.agent.0).await;
    api.submit(&fleet.stack, false).await;
    let annotation = json!({"stack_id": fleet.stack, "key": "sindri.dev/drift", "value": "detect"});
    api.post(&api.admin, &format!("/stacks/{}/annotations", fleet.stack), &annotation).await.expect_status(201);
    let hook = api.create_webhook("all", &[]).await;
    let before = poll(&fleet, &[]).await.expect_status(200);
    assert!(!before.headers.contains_key("sindri-proposals"));
    let audited = api.count_audit_entries().await;
    let created = propose(api, &fleet.generator.1, &fleet.stack).await.expect_status(201).json();
    assert_eq!(created["agents"], json!([fleet.agent.0]));
    assert_eq!(api.count_audit_entries().await, audited + 1);
    let after = poll(&fleet, &[("if-none-match", before.header("etag"))]).await.expect_status(304);
    assert_eq!(after.header("etag"), before.header("etag"));
    assert_eq!(after.header("x-sindri-target-version"), before.header("x-sindri-target-version"));
    assert!(after.header("sindri-proposals").parse::<i64>().unwrap() > 0);
    let listed = list(api, &fleet.agent).await;
    assert_eq!((&listed[0]["id"], &listed[0]["yaml_content"]), (&created["id"], &json!(BUNDLE)));
    assert_eq!(listed[0]["annotations"], json!({"sindri.dev/drift": "detect"}));
    let waiting = read(api, &fleet.generator.1, &created).await.expect_status(200).json();
    assert_eq!(waiting["agents"][0]["status"], "offline", "it has sent no heartbeat");
    let path = format!("/agents/{}/heartbeat", fleet.agent.0);
    api.post(&fleet.agent.1, &path, &json!({})).await.expect_status(204);
    let waiting = read(api, &fleet.generator.1, &created).await.expect_status(200).json();
    let expected = json!({"agent_id": fleet.agent.0, "name": "east", "cluster_name": "c", "status": "waiting"});
    assert_eq!(waiting["agents"], json!([expected]));
    let plan = json!({"failed": false, "changes": true, "plan": "+ ConfigMap b/a\n"});
    report(api, &fleet.agent, &created, &plan).await.expect_status(204);
    let other = json!({"failed": true, "changes": false, "plan": "another"});
    report(api, &fleet.agent, &created, &other).await.expect_status(204);
    let planned = read(api, &api.admin, &created).await.expect_status(200).json();
    let planned = &planned["agents"][0];
    assert_eq!((&planned["status"], &planned["changes"]), (&json!("planned"), &json!(true)));
    assert_eq!(planned["plan"], "+ ConfigMap b/a\n");
    assert!(list(api, &fleet.agent).await.is_empty());
    let deliveries = api.get(&api.admin, &format!("/webhooks/{hook}/deliveries")).await.expect_status(200).json();
    assert_eq!(deliveries, json!([]), "subscribers hear nothing");
    let history = api.get(&api.admin, &format!("/stacks/{}/history", fleet.stack)).await.expect_status(200).json();
    assert_eq!(history.as_array().unwrap().len(), 1);
    let logs = api.get(&api.admin, "/admin/audit-logs?action=proposal.created").await.expect_status(200).json();
    assert_eq!((&logs["logs"][0]["actor_type"], &logs["total"]), (&json!("generator"), &json!(1)));
}

#[tokio::test]
async fn inactive_agents_and_failed_plans_are_said_so() {
    let fleet = Fleet::new().await;
    let api = &fleet.api;
    let created = propose(api, &api.admin, &fleet.stack).await.expect_status(201).json();
    let inactive = read(api, &api.admin, &created).await.expect_status(200).json();
    assert_eq!(inactive["agents"][0]["status"], "inactive");
    let failed = json!({"failed": true, "changes": false, "plan": "! document 1, line 3: no\n"});
    report(api, &fleet.agent, &created, &failed).await.expect_status(204);
    let failed = read(api, &api.admin, &created).await.expect_status(200).json();
    let plan = &failed["agents"][0];
    assert_eq!((&plan["status"], &plan["plan"]), (&json!("failed"), &json!("! document 1, line 3: no\n")));
    assert!(plan.get("changes").is_none(), "it is not known");
}

#[tokio::test]
async fn only_the_owner_and_the_agents_of_a_stack_have_its_proposals() {
    let fleet = Fleet::new().await;
    let (api, other) = (&fleet.api, fleet.api.create_generator("other").await);
    let west = api.create_agent("west", &[&fleet.generator.0]).await;
    let foreign = api.create_stack("foreign", &other.0).await;
    let created = propose(api, &fleet.generator.1, &fleet.stack).await.expect_status(201).json();
    assert_eq!(propose(api, &other.1, &fleet.stack).await.expect_error(403), "stack_not_owned");
    assert_eq!(propose(api, &fleet.agent.1, &fleet.stack).await.expect_error(403), "stack_not_owned");
    assert_eq!(read(api, &other.1, &created).await.expect_error(403), "stack_not_owned");
    let mut moved = created.clone();
    moved["stack_id"] = json!(foreign);
    assert_eq!(read(api, &other.1, &moved).await.expect_error(404), "proposal_not_found");
    assert!(list(api, &west).await.is_empty());
    let plan = json!({"failed": false, "changes": true, "plan": "p"});
    assert_eq!(report(api, &west, &created, &plan).await.expect_error(404), "proposal_not_found");
    // A large text of another generator is not parsed.
    let large = json!({"yaml_content": format!("a: [{}", "x".repeat(20_000))});
    let rejected = api.post(&other.1, &format!("/stacks/{}/proposals", fleet.stack), &large).await;
    assert_eq!(rejected.expect_error(403), "stack_not_owned");
    let rejected = api.post(&fleet.generator.1, &format!("/stacks/{}/proposals", fleet.stack), &large).await;
    assert_eq!(rejected.expect_error(400), "invalid_deployment_object");
}

#[tokio::test]
async fn texts_plans_and_their_number_are_limited() {
    let fleet = Fleet::new().await;
    let (api, path) = (&fleet.api, format!("/stacks/{}/proposals", fleet.stack));
    activate(api, &fleet.agent.0).await;
    for yaml in ["", "a: [", "# nothing\n"] {
        let rejected = api.post(&api.admin, &path, &json!({"yaml_content": yaml})).await;
        assert_eq!(rejected.expect_error(400), "invalid_deployment_object", "{yaml}");
    }
    api.post(&api.admin, &path, &json!({})).await.expect_status(400);
    let large = json!({"yaml_content": format!("a: {}", "x".repeat(2 * 1024 * 1024))});
    assert_eq!(api.post(&api.admin, &path, &large).await.expect_error(413), "body_too_large");
    let created = propose(api, &api.admin, &fleet.stack).await.expect_status(201).json();
    let plan = |length| json!({"failed": false, "changes": true, "plan": "p".repeat(length)});
    let rejected = report(api, &fleet.agent, &created, &plan(64 * 1024 + 1)).await;
    assert_eq!(rejected.expect_error(400), "invalid_plan");
    report(api, &fleet.agent, &created, &plan(64 * 1024)).await.expect_status(204);
    for _ in 0..8 {
        propose(api, &api.admin, &fleet.stack).await.expect_status(201);
    }
    let rejected = propose(api, &api.admin, &fleet.stack).await;
    assert_eq!(rejected.header("retry-after"), "601");
    assert!(text(&rejected.json()["message"]).contains("8 proposals of this stack wait"));
    assert_eq!(rejected.expect_error(429), "too_many_proposals");
}

#[tokio::test]
async fn a_proposal_expires_after_ten_minutes() {
    let seconds = Arc::new(AtomicI64::new(1_700_000_000));
    let now = seconds.clone();
    let clock = Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap());
    let api = Api::with_clock(":memory:", clock, counting_entropy()).await;
    let generator = api.create_generator("shop").await;
    let agent = api.create_agent("east", &[&generator.0]).await;
    let stack = api.create_stack("web", &generator.0).await;
    api.target(&agent.0, &stack).await;
    let created = propose(&api, &generator.1, &stack).await.expect_status(201).json();
    assert_eq!(created["expires_at"], "2023-11-14T22:23:20Z");
    seconds.fetch_add(599, Ordering::SeqCst);
    read(&api, &generator.1, &created).await.expect_status(200);
    seconds.fetch_add(1, Ordering::SeqCst);
    assert_eq!(read(&api, &generator.1, &created).await.expect_error(404), "proposal_not_found");
    assert!(list(&api, &agent).await.is_empty());
    let plan = json!({"failed": false, "changes": true, "plan": "p"});
    assert_eq!(report(&api, &agent, &created, &plan).await.expect_error(404), "proposal_not_found");
}

#[tokio::test]
async fn a_broker_answers_for_proposals_of_another_on_the_same_store() {
    let [first, second] = Api::two_on_one_store().await;
    let generator = first.create_generator("shop").await;
    let agent = first.create_agent("east", &[&generator.0]).await;
    let stack = first.create_stack("web", &generator.0).await;
    first.target(&agent.0, &stack).await;
    let created = propose(&first, &generator.1, &stack).await.expect_status(201).json();
    assert_eq!(list(&second, &agent).await[0]["id"], created["id"]);
    let plan = json!({"failed": false, "changes": false, "plan": "= nothing to do\n"});
    report(&second, &agent, &created, &plan).await.expect_status(204);
    let planned = read(&first, &generator.1, &created).await.expect_status(200).json();
    assert_eq!(planned["agents"][0]["changes"], false);
}

/// An agent of a stack whose polls wait.
struct Waiter {
    agent: (String, String),
    stack: String,
}

async fn call(server: &TestServer, method: &str, path: &str, body: &Value) -> Value {
    let body = body.to_string();
    let head = crate::test_server::post(&format!("/api/v1{path}"), &server.admin, body.len());
    let (status, response) = server.request(&format!("{}{body}", head.replacen("POST", method, 1))).await;
    assert!(status < 300, "{status} {response}");
    serde_json::from_str(&response).unwrap_or_default()
}

impl Waiter {
    async fn new(server: &TestServer) -> Self {
        let generator = call(server, "POST", "/generators", &json!({"name": "shop"})).await;
        let generator = text(&generator["generator"]["id"]);
        let request = json!({"name": "east", "cluster_name": "c", "generator_ids": [generator]});
        let agent = call(server, "POST", "/agents", &request).await;
        let agent = (text(&agent["agent"]["id"]), text(&agent["initial_pak"]));
        let stack = call(server, "POST", "/stacks", &json!({"name": "web", "generator_id": generator})).await;
        let stack = text(&stack["id"]);
        let target = json!({"agent_id": agent.0, "stack_id": stack});
        call(server, "POST", &format!("/agents/{}/targets", agent.0), &target).await;
        Self { agent, stack }
    }

    async fn propose(&self, server: &TestServer) {
        call(server, "POST", &format!("/stacks/{}/proposals", self.stack), &json!({"yaml_content": BUNDLE})).await;
    }

    /// Starts a poll that waits, with further headers.
    async fn wait(&self, server: &TestServer, headers: &str) -> RawConnection {
        let head = self.start(server, "", "").await.read_head().await;
        let etag = header(&head, "etag").unwrap().to_owned();
        let peer = self.start(server, "?wait=60", &format!("if-none-match: {etag}\r\n{headers}")).await;
        // This response comes after the poll has begun to wait.
        server.request("GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n").await;
        peer
    }

    async fn start(&self, server: &TestServer, query: &str, headers: &str) -> RawConnection {
        let mut peer = server.connect().await;
        let path = format!("/api/v1/agents/{}/target-state{query}", self.agent.0);
        peer.send(&format!("GET {path} HTTP/1.1\r\nhost: b\r\nauthorization: {}\r\n{headers}\r\n", self.agent.1)).await;
        peer
    }
}

fn assert_waiting(peer: &RawConnection) {
    let mut byte = [0];
    assert_eq!(peer.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_proposal_ends_the_wait_of_an_agent_that_has_not_seen_it_once() {
    let server = TestServer::new(Limits::default()).await;
    let waiter = Waiter::new(&server).await;
    let old = waiter.wait(&server, "").await;
    let mut new = waiter.wait(&server, "sindri-proposals: 0\r\n").await;
    waiter.propose(&server).await;
    let head = new.read_head().await;
    assert!(head.starts_with("HTTP/1.1 304"), "{head}");
    let seen = header(&head, "sindri-proposals").unwrap().to_owned();
    // The agent does not answer; it is not woken again for the same proposal.
    let mut again = waiter.wait(&server, &format!("sindri-proposals: {seen}\r\n")).await;
    assert_waiting(&again);
    assert_waiting(&old);
    waiter.propose(&server).await;
    let head = again.read_head().await;
    let next: i64 = header(&head, "sindri-proposals").unwrap().parse().unwrap();
    assert!(head.starts_with("HTTP/1.1 304") && next > seen.parse().unwrap(), "{head}");
    assert_waiting(&old);
    // A process that has started since hears of it at once.
    let mut late = waiter.start(&server, "", "").await;
    assert_eq!(header(&late.read_head().await, "sindri-proposals"), Some(next.to_string().as_str()));
}

#[tokio::test]
async fn a_proposal_at_another_broker_ends_the_wait() {
    let store = SqliteStore::open(":memory:", None).unwrap();
    let servers = [TestServer::on_store(store.replica()).await, TestServer::on_store(store.replica()).await];
    let waiter = Waiter::new(&servers[0]).await;
    let mut waiting = waiter.wait(&servers[1], "sindri-proposals: 0\r\n").await;
    waiter.propose(&servers[0]).await;
    let head = waiting.read_head().await;
    assert!(head.starts_with("HTTP/1.1 304") && header(&head, "sindri-proposals").is_some(), "{head}");
}
