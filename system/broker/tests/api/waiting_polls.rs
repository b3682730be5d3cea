//! Polls that wait: woken by changes of their own agent, and by shutdown.

use serde_json::{Value, json};
use sindri_broker::Limits;

use crate::support::{BUNDLE, text};
use crate::test_server::{RawConnection, TestServer, header, post, with_timeout};

struct Waiter {
    agent: String,
    key: String,
}

async fn create(server: &TestServer, path: &str, body: &Value) -> Value {
    let (status, response) = send(server, "POST", path, &server.admin, body).await;
    assert_eq!(status, 201, "{response}");
    response
}

async fn send(server: &TestServer, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let head = post(&format!("/api/v1{path}"), key, body.len()).replacen("POST", method, 1);
    let (status, response) = server.request(&format!("{head}{body}")).await;
    (status, serde_json::from_str(&response).unwrap_or_default())
}

impl Waiter {
    async fn new(server: &TestServer, name: &str, generator: &str) -> Self {
        let request = json!({"name": name, "cluster_name": "c", "generator_ids": [generator]});
        let agent = create(server, "/agents", &request).await;
        Self { agent: text(&agent["agent"]["id"]), key: text(&agent["initial_pak"]) }
    }

    async fn start_poll(&self, server: &TestServer, query: &str, etag: &str) -> RawConnection {
        let mut peer = server.connect().await;
        let path = format!("/api/v1/agents/{}/target-state{query}", self.agent);
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: b\r\nauthorization: {}\r\nif-none-match: {etag}\r\n\r\n", self.key);
        peer.send(&head).await;
        peer
    }

    /// Polls, and polls again with the ETag and a wait.
    async fn wait(&self, server: &TestServer, query: &str) -> RawConnection {
        let head = self.start_poll(server, "", "").await.read_head().await;
        self.start_poll(server, query, header(&head, "etag").unwrap()).await
    }
}

/// The same wait with and without a mode.
const QUERIES: [&str; 2] = ["?wait=60", "?mode=full&wait=60"];

#[tokio::test]
async fn a_change_wakes_only_the_polls_of_its_agent() {
    for query in QUERIES {
        let server = TestServer::new(Limits::default()).await;
        let generator = text(&create(&server, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let stack = text(&create(&server, "/stacks", &json!({"name": "web", "generator_id": generator})).await["id"]);
        create(&server, &format!("/stacks/{stack}/deployment-objects"), &json!({"yaml_content": BUNDLE})).await;
        let (east, west) =
            (Waiter::new(&server, "east", &generator).await, Waiter::new(&server, "west", &generator).await);
        let (mut woken, waiting) = (east.wait(&server, query).await, west.wait(&server, query).await);
        let target = json!({"agent_id": east.agent, "stack_id": stack});
        create(&server, &format!("/agents/{}/targets", east.agent), &target).await;
        let (status, body) = woken.read_response().await;
        assert_eq!(status, 200, "{query}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()[0]["stack_id"], json!(stack));
        let mut byte = [0];
        assert_eq!(waiting.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{query}");
    }
}

#[tokio::test]
async fn a_decision_and_a_policy_wake_only_the_polls_of_their_agent() {
    for query in QUERIES {
        let server = TestServer::new(Limits::default()).await;
        let generator = text(&create(&server, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let stack = text(&create(&server, "/stacks", &json!({"name": "web", "generator_id": generator})).await["id"]);
        let bundle = json!({"yaml_content": BUNDLE});
        let revision = create(&server, &format!("/stacks/{stack}/deployment-objects"), &bundle).await;
        let (east, west) =
            (Waiter::new(&server, "east", &generator).await, Waiter::new(&server, "west", &generator).await);
        let target = json!({"agent_id": east.agent, "stack_id": stack});
        create(&server, &format!("/agents/{}/targets", east.agent), &target).await;
        let (mut woken, waiting) = (east.wait(&server, query).await, west.wait(&server, query).await);
        let held = json!({
            "deployment_object_id": revision["id"], "digest": "a".repeat(64), "reasons": ["r"], "plan": "p",
        });
        let path = format!("/agents/{}/stacks/{stack}/approval", east.agent);
        let (status, approval) = send(&server, "PUT", &path, &east.key, &held).await;
        assert_eq!(status, 200, "{approval}");
        let path = format!("/approvals/{}/approve", text(&approval["id"]));
        assert_eq!(send(&server, "POST", &path, &server.admin, &json!({})).await.0, 200);
        assert_eq!(woken.read_response().await.0, 200, "{query}");
        let mut woken = east.wait(&server, query).await;
        let annotation = json!({"stack_id": stack, "key": "sindri.dev/prune", "value": "off"});
        create(&server, &format!("/stacks/{stack}/annotations"), &annotation).await;
        assert_eq!(woken.read_response().await.0, 200, "{query}");
        let mut byte = [0];
        assert_eq!(waiting.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{query}");
    }
}

#[tokio::test]
async fn a_changed_status_ends_a_wait_and_is_in_the_response() {
    for query in QUERIES {
        let server = TestServer::new(Limits::default()).await;
        let generator = text(&create(&server, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let east = Waiter::new(&server, "east", &generator).await;
        let mut waiting = east.wait(&server, query).await;
        let change = async |changes: Value| {
            let (status, _) = send(&server, "PUT", &format!("/agents/{}", east.agent), &server.admin, &changes).await;
            assert_eq!(status, 200);
        };
        // A new name does not end the wait.
        change(json!({"name": "eastern", "status": "INACTIVE"})).await;
        let mut byte = [0];
        assert_eq!(waiting.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{query}");
        change(json!({"status": "ACTIVE"})).await;
        let head = waiting.read_head().await;
        assert!(head.starts_with("HTTP/1.1 304"), "{query}: {head}");
        assert_eq!(header(&head, "sindri-agent-status"), Some("ACTIVE"), "{query}");
        // A poll that assumes another status gets a response at once.
        let etag = header(&head, "etag").unwrap().to_owned();
        let mut late = server.connect().await;
        let path = format!("/api/v1/agents/{}/target-state{query}", east.agent);
        let assumed = "sindri-agent-status: INACTIVE";
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: b\r\nauthorization: {}\r\nif-none-match: {etag}\r\n{assumed}\r\n\r\n",
            east.key
        );
        late.send(&request).await;
        let head = late.read_head().await;
        assert!(head.starts_with("HTTP/1.1 304"), "{query}: {head}");
        assert_eq!(header(&head, "sindri-agent-status"), Some("ACTIVE"), "{query}");
    }
}

#[tokio::test]
async fn shutdown_ends_every_wait() {
    for query in QUERIES {
        let mut server = TestServer::new(Limits::default()).await;
        let generator = text(&create(&server, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let mut waiting = Waiter::new(&server, "east", &generator).await.wait(&server, query).await;
        // This response comes after the poll has begun to wait.
        server.request("GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n").await;
        server.stop();
        assert!(with_timeout(waiting.read_head()).await.starts_with("HTTP/1.1 304"), "{query}");
        server.await_shutdown().await;
    }
}

#[tokio::test]
async fn a_poll_whose_key_is_revoked_while_it_waits_is_throttled_by_its_peer() {
    for query in QUERIES {
        let server = TestServer::new(Limits::default()).await;
        let generator = text(&create(&server, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let east = Waiter::new(&server, "east", &generator).await;
        let mut waiting = Vec::new();
        for _ in 0..11 {
            waiting.push(east.wait(&server, query).await);
        }
        // This response comes after the polls have begun to wait.
        server.request("GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n").await;
        let path = format!("/agents/{}", east.agent);
        assert_eq!(send(&server, "POST", &format!("{path}/rotate-pak"), &server.admin, &json!({})).await.0, 200);
        assert_eq!(send(&server, "PUT", &path, &server.admin, &json!({"status": "ACTIVE"})).await.0, 200);
        let mut statuses = Vec::new();
        for poll in &mut waiting {
            statuses.push(poll.read_response().await.0);
        }
        statuses.sort_unstable();
        assert_eq!((&statuses[..10], statuses[10]), (&[401; 10][..], 429), "{query}");
    }
}
