//! Polls that wait: woken by what concerns them, by nothing else, and answered when the broker ends.

use serde_json::{Value, json};
use sindri_broker::Limits;

use crate::served::{Raw, Served, header, in_time, post};
use crate::support::{BUNDLE, text};

struct Waiter {
    agent: String,
    key: String,
}

async fn made(served: &Served, path: &str, body: &Value) -> Value {
    let (status, answer) = asked(served, "POST", path, &served.admin, body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

async fn asked(served: &Served, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let head = post(&format!("/api/v1{path}"), key, body.len()).replacen("POST", method, 1);
    let (status, answer) = served.ask(&format!("{head}{body}")).await;
    (status, serde_json::from_str(&answer).unwrap_or_default())
}

impl Waiter {
    async fn new(served: &Served, name: &str, generator: &str) -> Self {
        let request = json!({"name": name, "cluster_name": "c", "generator_ids": [generator]});
        let agent = made(served, "/agents", &request).await;
        Self { agent: text(&agent["agent"]["id"]), key: text(&agent["initial_pak"]) }
    }

    async fn ask(&self, served: &Served, query: &str, etag: &str) -> Raw {
        let mut peer = served.peer().await;
        let path = format!("/api/v1/agents/{}/target-state{query}", self.agent);
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: b\r\nauthorization: {}\r\nif-none-match: {etag}\r\n\r\n", self.key);
        peer.send(&head).await;
        peer
    }

    /// Learns what there is, and waits for more.
    async fn wait(&self, served: &Served, query: &str) -> Raw {
        let known = self.ask(served, "", "").await.head().await;
        self.ask(served, query, header(&known, "etag").unwrap()).await
    }
}

/// The same wait with and without a mode.
const QUERIES: [&str; 2] = ["?wait=60", "?mode=full&wait=60"];

#[tokio::test]
async fn a_change_wakes_the_agent_that_it_concerns_and_no_other() {
    for query in QUERIES {
        let served = Served::new(Limits::default()).await;
        let generator = text(&made(&served, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let stack = text(&made(&served, "/stacks", &json!({"name": "web", "generator_id": generator})).await["id"]);
        made(&served, &format!("/stacks/{stack}/deployment-objects"), &json!({"yaml_content": BUNDLE})).await;
        let (east, west) =
            (Waiter::new(&served, "east", &generator).await, Waiter::new(&served, "west", &generator).await);
        let (mut woken, waiting) = (east.wait(&served, query).await, west.wait(&served, query).await);
        let target = json!({"agent_id": east.agent, "stack_id": stack});
        made(&served, &format!("/agents/{}/targets", east.agent), &target).await;
        let (status, body) = woken.answer().await;
        assert_eq!(status, 200, "{query}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()[0]["stack_id"], json!(stack));
        let mut byte = [0];
        assert_eq!(waiting.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{query}");
    }
}

#[tokio::test]
async fn a_decision_and_a_policy_wake_the_agent_that_they_concern_and_no_other() {
    for query in QUERIES {
        let served = Served::new(Limits::default()).await;
        let generator = text(&made(&served, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let stack = text(&made(&served, "/stacks", &json!({"name": "web", "generator_id": generator})).await["id"]);
        let bundle = json!({"yaml_content": BUNDLE});
        let revision = made(&served, &format!("/stacks/{stack}/deployment-objects"), &bundle).await;
        let (east, west) =
            (Waiter::new(&served, "east", &generator).await, Waiter::new(&served, "west", &generator).await);
        let target = json!({"agent_id": east.agent, "stack_id": stack});
        made(&served, &format!("/agents/{}/targets", east.agent), &target).await;
        let (mut woken, waiting) = (east.wait(&served, query).await, west.wait(&served, query).await);
        let held = json!({
            "deployment_object_id": revision["id"], "digest": "a".repeat(64), "reasons": ["r"], "plan": "p",
        });
        let path = format!("/agents/{}/stacks/{stack}/approval", east.agent);
        let (status, approval) = asked(&served, "PUT", &path, &east.key, &held).await;
        assert_eq!(status, 200, "{approval}");
        let path = format!("/approvals/{}/approve", text(&approval["id"]));
        assert_eq!(asked(&served, "POST", &path, &served.admin, &json!({})).await.0, 200);
        assert_eq!(woken.answer().await.0, 200, "{query}");
        let mut woken = east.wait(&served, query).await;
        let annotation = json!({"stack_id": stack, "key": "sindri.dev/prune", "value": "off"});
        made(&served, &format!("/stacks/{stack}/annotations"), &annotation).await;
        assert_eq!(woken.answer().await.0, 200, "{query}");
        let mut byte = [0];
        assert_eq!(waiting.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{query}");
    }
}

#[tokio::test]
async fn another_status_ends_a_wait_and_tells_it() {
    for query in QUERIES {
        let served = Served::new(Limits::default()).await;
        let generator = text(&made(&served, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let east = Waiter::new(&served, "east", &generator).await;
        let mut waiting = east.wait(&served, query).await;
        let change = async |changes: Value| {
            let (status, _) = asked(&served, "PUT", &format!("/agents/{}", east.agent), &served.admin, &changes).await;
            assert_eq!(status, 200);
        };
        // Another name is nothing that it waits for, and answers come in the order of requests.
        change(json!({"name": "eastern", "status": "INACTIVE"})).await;
        let mut byte = [0];
        assert_eq!(waiting.0.try_read(&mut byte).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{query}");
        change(json!({"status": "ACTIVE"})).await;
        let head = waiting.head().await;
        assert!(head.starts_with("HTTP/1.1 304"), "{query}: {head}");
        assert_eq!(header(&head, "sindri-agent-status"), Some("ACTIVE"), "{query}");
        // Who believes something else is answered at once.
        let etag = header(&head, "etag").unwrap().to_owned();
        let mut late = served.peer().await;
        let path = format!("/api/v1/agents/{}/target-state{query}", east.agent);
        let believes = "sindri-agent-status: INACTIVE";
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: b\r\nauthorization: {}\r\nif-none-match: {etag}\r\n{believes}\r\n\r\n",
            east.key
        );
        late.send(&request).await;
        let head = late.head().await;
        assert!(head.starts_with("HTTP/1.1 304"), "{query}: {head}");
        assert_eq!(header(&head, "sindri-agent-status"), Some("ACTIVE"), "{query}");
    }
}

#[tokio::test]
async fn the_end_of_the_broker_answers_whoever_waits() {
    for query in QUERIES {
        let mut served = Served::new(Limits::default()).await;
        let generator = text(&made(&served, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let mut waiting = Waiter::new(&served, "east", &generator).await.wait(&served, query).await;
        // Another request is answered after this one has begun to wait.
        served.ask("GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n").await;
        served.stop();
        assert!(in_time(waiting.head()).await.starts_with("HTTP/1.1 304"), "{query}");
        served.ended().await;
    }
}

#[tokio::test]
async fn a_poll_whose_key_is_revoked_while_it_waits_is_throttled_by_its_peer() {
    for query in QUERIES {
        let served = Served::new(Limits::default()).await;
        let generator = text(&made(&served, "/generators", &json!({"name": "shop"})).await["generator"]["id"]);
        let east = Waiter::new(&served, "east", &generator).await;
        let mut waiting = Vec::new();
        for _ in 0..11 {
            waiting.push(east.wait(&served, query).await);
        }
        // Responded to after the polls above have begun to wait.
        served.ask("GET /healthz HTTP/1.1\r\nhost: b\r\n\r\n").await;
        let path = format!("/agents/{}", east.agent);
        assert_eq!(asked(&served, "POST", &format!("{path}/rotate-pak"), &served.admin, &json!({})).await.0, 200);
        assert_eq!(asked(&served, "PUT", &path, &served.admin, &json!({"status": "ACTIVE"})).await.0, 200);
        let mut statuses = Vec::new();
        for poll in &mut waiting {
            statuses.push(poll.answer().await.0);
        }
        statuses.sort_unstable();
        assert_eq!((&statuses[..10], statuses[10]), (&[401; 10][..], 429), "{query}");
    }
}
