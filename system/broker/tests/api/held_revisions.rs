//! Polls of an agent that has some of the bundles already.

use axum::body::Body;
use http::{Method, Request};
use serde_json::json;
use sindri_model::wire::{DeploymentObject, HELD_REVISIONS_HEADER, HeldRevisions};
use sindri_model::{Checksum, Entropy};

use crate::support::{Api, TestResponse, counting_entropy};

const STACKS: usize = 100;
const BUNDLE_BYTES: usize = 10_000;
/// Limit for a revision without its bundle.
const ENVELOPE_BYTES_MAX: usize = 520;

/// A broker and an agent with a hundred stacks.
struct ManyStacks {
    api: Api,
    agent: (String, String),
    stacks: Vec<String>,
}

/// Returns a bundle of about [`BUNDLE_BYTES`].
fn bundle(stack: usize, version: usize) -> String {
    let text: String =
        (0..BUNDLE_BYTES).map(|index| char::from(b'a' + ((index * 7 + stack + version) % 26) as u8)).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{stack}, namespace: b}}\ndata: {{text: {text}}}\n")
}

impl ManyStacks {
    async fn new(path: &str) -> Self {
        let api = Api::open(path, counting_entropy()).await;
        let generator = api.create_generator("shop").await;
        let agent = api.create_agent("east", &[&generator.0]).await;
        let mut fleet = Self { api, agent, stacks: Vec::new() };
        for number in 0..STACKS {
            let stack = fleet.api.create_stack(&format!("stack-{number}"), &generator.0).await;
            fleet.api.target(&fleet.agent.0, &stack).await;
            fleet.stacks.push(stack);
            fleet.submit(number, 1).await;
        }
        fleet
    }

    async fn submit(&self, number: usize, version: usize) {
        let path = format!("/stacks/{}/deployment-objects", self.stacks[number]);
        let request = json!({"yaml_content": bundle(number, version)});
        self.api.call(&self.api.admin, Method::POST, &path, Some(&request)).await.expect_status(201);
    }

    /// Polls with the header of an agent that holds these revisions.
    async fn poll(&self, held: &[DeploymentObject], etag: &str) -> TestResponse {
        let held = HeldRevisions::from_revisions(&held.iter().collect::<Vec<_>>());
        self.poll_with_header(&held.to_string(), etag).await
    }

    async fn poll_with_header(&self, held: &str, etag: &str) -> TestResponse {
        let request = Request::get(format!("/api/v1/agents/{}/target-state", self.agent.0))
            .header("authorization", &self.agent.1)
            .header("if-none-match", etag)
            .header(HELD_REVISIONS_HEADER, held)
            .body(Body::empty())
            .unwrap();
        self.api.send(request).await
    }

    async fn poll_all(&self) -> TestResponse {
        self.api.get(&self.agent.1, &format!("/agents/{}/target-state", self.agent.0)).await
    }
}

fn revisions(response: &TestResponse) -> Vec<DeploymentObject> {
    serde_json::from_slice(&response.body).unwrap()
}

#[tokio::test]
async fn a_changed_stack_costs_its_own_bytes_and_a_little_for_each_other_one() {
    let fleet = ManyStacks::new(":memory:").await;
    let whole = fleet.poll_all().await.expect_status(200);
    assert!(whole.body.len() > STACKS * BUNDLE_BYTES);
    let (held, etag) = (revisions(&whole), whole.header("etag"));
    fleet.poll(&held, etag).await.expect_status(304);
    fleet.submit(42, 2).await;
    let response = fleet.poll(&held, etag).await.expect_status(200);
    let limit = 2 * BUNDLE_BYTES + STACKS * ENVELOPE_BYTES_MAX;
    assert!(response.body.len() < limit, "{} bytes, and the limit is {limit}", response.body.len());
    // Completed with the held bundles, it is the target state that a poll without the header gets.
    let mut completed = revisions(&response);
    for revision in completed.iter_mut().filter(|revision| revision.yaml_content.is_empty()) {
        let held = held.iter().find(|held| held.id == revision.id).unwrap();
        revision.yaml_content.clone_from(&held.yaml_content);
    }
    assert!(completed.iter().all(|revision| Checksum::compute(&revision.yaml_content) == revision.yaml_checksum));
    let whole = fleet.poll_all().await.expect_status(200);
    assert_eq!(completed, revisions(&whole));
    assert_eq!(response.header("etag"), format!("W/{}", whole.header("etag")), "the bytes differ");
    for etag in [response.header("etag"), whole.header("etag")] {
        fleet.poll(&completed, etag).await.expect_status(304);
    }
}

#[tokio::test]
async fn a_poll_that_holds_nothing_of_the_target_state_gets_all_of_it() {
    let fleet = ManyStacks::new(":memory:").await;
    let whole = fleet.poll_all().await.expect_status(200);
    for held in ["", "999999", "1,x", "-1", "\u{e9}"] {
        let response = fleet.poll_with_header(held, "\"other\"").await.expect_status(200);
        assert_eq!((response.header("etag"), &response.body), (whole.header("etag"), &whole.body), "{held}");
    }
    // A restarted agent holds nothing, and one whose copy has only some stacks holds these.
    let some = fleet.poll(&revisions(&whole)[10..], "\"other\"").await.expect_status(200);
    let has_bundle: Vec<bool> = revisions(&some).iter().map(|revision| !revision.yaml_content.is_empty()).collect();
    assert_eq!(has_bundle, (0..STACKS).map(|number| number < 10).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_administrator_and_incremental_polls_get_every_bundle() {
    let fleet = ManyStacks::new(":memory:").await;
    let whole = revisions(&fleet.poll_all().await);
    let held = HeldRevisions::from_revisions(&whole.iter().collect::<Vec<_>>()).to_string();
    for (key, query) in [(&fleet.api.admin, ""), (&fleet.agent.1, "?mode=incremental")] {
        let request = Request::get(format!("/api/v1/agents/{}/target-state{query}", fleet.agent.0))
            .header("authorization", key)
            .header(HELD_REVISIONS_HEADER, &held)
            .body(Body::empty())
            .unwrap();
        assert_eq!(revisions(&fleet.api.send(request).await.expect_status(200)), whole);
    }
}

/// Returns entropy that has nothing in common with that of the other processes of a test.
fn entropy_of_process(number: usize) -> Entropy {
    let entropy = counting_entropy();
    for _ in 0..number * 10_000 {
        entropy.number_below(2);
    }
    entropy
}

#[tokio::test]
async fn after_a_restore_exactly_the_bundles_that_agent_and_database_share_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let (live, backup) = (directory.path().join("live.db"), directory.path().join("backup.db"));
    let mut fleet = ManyStacks::new(live.to_str().unwrap()).await;
    fleet.poll_all().await.expect_status(200);
    fleet.api = Api::open(":memory:", counting_entropy()).await;
    std::fs::copy(&live, &backup).unwrap();
    fleet.api = Api::open(live.to_str().unwrap(), entropy_of_process(1)).await;
    fleet.submit(42, 2).await;
    let newest = fleet.poll_all().await.expect_status(200);
    let held = revisions(&newest);
    // The database is replaced by its backup, and the agent proves it with its ETag.
    fleet.api = Api::open(":memory:", counting_entropy()).await;
    std::fs::copy(&backup, &live).unwrap();
    fleet.api = Api::open(live.to_str().unwrap(), entropy_of_process(2)).await;
    let restored = fleet.poll(&held, newest.header("etag")).await.expect_status(200);
    assert_eq!(restored.header("x-sindri-epoch"), "2");
    let complete: Vec<DeploymentObject> =
        revisions(&restored).into_iter().filter(|revision| !revision.yaml_content.is_empty()).collect();
    assert_eq!(complete.iter().map(|revision| &*revision.yaml_content).collect::<Vec<_>>(), [bundle(42, 1)]);
    // A revision of the new epoch has a sequence that no revision had before.
    fleet.submit(42, 3).await;
    let next = fleet.poll(&held, restored.header("etag")).await.expect_status(200);
    let last = revisions(&next).pop().unwrap();
    assert_eq!((last.yaml_content, last.sequence_id.epoch().0), (bundle(42, 3), 2));
}
