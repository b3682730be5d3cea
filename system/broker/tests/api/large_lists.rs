//! Lists of large records: each page has a limit in bytes, and a link to the rest.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sindri_broker::{BundleCipher, EncryptionKey, SqliteStore, Store};

use crate::lists::{LARGE_ENTRIES, count_in_pages, next_link};
use crate::support::{Api, Fleet, event, text};

/// Characters of four bytes.
fn wide(chars: usize) -> String {
    "\u{10000}".repeat(chars)
}

#[tokio::test]
async fn pages_of_the_status_of_a_stack_end_when_their_conditions_are_large() {
    const AGENTS: usize = 40;
    let fleet = Fleet::new().await;
    let (api, path) = (&fleet.api, format!("/stacks/{}/status", fleet.stack));
    let revision = api.submit(&fleet.stack, false).await;
    let message = wide(4_096);
    for number in 0..AGENTS {
        let agent = match number {
            0 => fleet.agent.clone(),
            _ => {
                let agent = api.create_agent(&format!("z{number:02}"), &[&fleet.generator.0]).await;
                api.target(&agent.0, &fleet.stack).await;
                agent
            }
        };
        api.poll(&agent).await;
        let status = if number + 1 == AGENTS { "False" } else { "True" };
        let other =
            |kind: u8| json!({"type": format!("Other{kind}"), "status": "True", "reason": "", "message": message});
        let known = ["Accepted", "Applied", "Ready"];
        let known = known.map(|kind| json!({"type": kind, "status": status, "reason": "Failed", "message": message}));
        let conditions: Vec<Value> = known.into_iter().chain((0..10).map(other)).collect();
        let report = json!({"deployment_object_id": revision["id"], "conditions": conditions});
        let path = format!("/agents/{}/stacks/{}/status", agent.0, fleet.stack);
        api.put(&agent.1, &path, &report).await.expect_status(204);
    }
    let (agents, pages) = count_in_pages(api, &path, "", Some("agents")).await;
    assert!(agents == AGENTS && pages > 1, "{agents} agents on {pages} pages");
    let first = api.get(&api.admin, &format!("{path}?limit=1")).await.expect_status(200);
    assert_eq!(first.json()["state"], "Failed", "over all pages: the last agent has failed");
    assert_eq!(count_in_pages(api, &path, "?limit=7", Some("agents")).await.0, AGENTS);
}

/// Targets this number of further stacks with a revision at the agent; returns their ids and those of their revisions.
async fn add_stacks(fleet: &Fleet, count: usize) -> Vec<(String, Value)> {
    let mut stacks = Vec::new();
    for number in 0..count {
        let stack = fleet.api.create_stack(&format!("s{number}"), &fleet.generator.0).await;
        let revision = fleet.api.submit(&stack, false).await;
        fleet.api.target(&fleet.agent.0, &stack).await;
        stacks.push((stack, revision));
    }
    stacks
}

#[tokio::test]
async fn pages_of_outcomes_end_when_their_messages_are_large() {
    let fleet = Fleet::new().await;
    let (api, agent) = (&fleet.api, &fleet.agent);
    let stacks = add_stacks(&fleet, LARGE_ENTRIES).await;
    fleet.poll().await;
    for (_, revision) in &stacks {
        let mut event = event(&agent.0, &text(&revision["id"]), "FAILURE");
        event["message"] = "x".repeat(16 * 1024).into();
        api.post(&agent.1, &format!("/agents/{}/events", agent.0), &event).await.expect_status(201);
    }
    let path = format!("/agents/{}/outcomes", agent.0);
    assert_eq!(count_in_pages(api, &path, "", None).await, (LARGE_ENTRIES, 2));
    assert_eq!(count_in_pages(api, &path, "?limit=100", None).await, (LARGE_ENTRIES, LARGE_ENTRIES / 100 + 1));
}

#[tokio::test]
async fn pages_of_policies_end_when_their_annotations_are_large() {
    let fleet = Fleet::new().await;
    let (api, agent) = (&fleet.api, &fleet.agent.0);
    for (stack, _) in add_stacks(&fleet, LARGE_ENTRIES).await {
        let annotation = json!({"stack_id": stack, "key": "sindri.dev/note", "value": wide(4_096)});
        api.post(&api.admin, &format!("/stacks/{stack}/annotations"), &annotation).await.expect_status(201);
    }
    let path = format!("/agents/{agent}/policies");
    assert_eq!(count_in_pages(api, &path, "", None).await, (LARGE_ENTRIES, 2));
    assert_eq!(count_in_pages(api, &path, "?limit=100", None).await, (LARGE_ENTRIES, LARGE_ENTRIES / 100 + 1));
}

#[tokio::test]
async fn pages_of_webhooks_end_when_their_labels_are_large() {
    let fleet = Fleet::new().await;
    let labels: Vec<String> = (0..100).map(|_| wide(64)).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    for number in 0..LARGE_ENTRIES {
        fleet.api.create_webhook(&format!("w{number}"), &labels).await;
    }
    assert_eq!(count_in_pages(&fleet.api, "/webhooks", "", None).await, (LARGE_ENTRIES, 2));
}

const LARGE_BUNDLES: usize = 9;

/// A fleet whose agent should have nine stacks with a bundle of one MiB each.
async fn large_target_state() -> Fleet {
    let fleet = Fleet::new().await;
    let comment = "#".repeat(1024 * 1024);
    for number in 0..LARGE_BUNDLES {
        let stack = fleet.api.create_stack(&format!("s{number}"), &fleet.generator.0).await;
        let request = json!({"yaml_content": format!("a: {number}\n{comment}\n")});
        let path = format!("/stacks/{stack}/deployment-objects");
        fleet.api.post(&fleet.api.admin, &path, &request).await.expect_status(201);
        fleet.api.target(&fleet.agent.0, &stack).await;
    }
    fleet
}

#[tokio::test]
async fn an_incremental_target_state_that_is_cut_links_to_its_rest() {
    let fleet = large_target_state().await;
    let (api, path) = (&fleet.api, format!("/agents/{}/target-state", fleet.agent.0));
    for key in [&fleet.agent.1, &api.admin] {
        let (mut sequences, mut pages, mut query) = (Vec::new(), 0, "?mode=incremental".to_owned());
        loop {
            let response = api.get(key, &format!("{path}{query}")).await.expect_status(200);
            assert!(response.body.len() < 6 * 1024 * 1024, "{} bytes", response.body.len());
            assert!(response.headers.contains_key("x-sindri-epoch"));
            let revisions = response.json();
            sequences.extend(revisions.as_array().unwrap().iter().map(|item| item["sequence_id"].as_i64().unwrap()));
            pages += 1;
            match next_link(&response) {
                Some(next) => query = next,
                None => break,
            }
        }
        assert!(sequences.is_sorted(), "{sequences:?}");
        assert_eq!((sequences.len(), pages), (LARGE_BUNDLES, 3));
    }
    // The whole target state is never cut: what is not in it is not to be applied.
    let whole = api.get(&fleet.agent.1, &format!("{path}?limit=1")).await.expect_status(200);
    assert_eq!((whole.json().as_array().unwrap().len(), next_link(&whole)), (LARGE_BUNDLES, None));
}

#[tokio::test]
async fn an_agent_that_follows_no_link_gets_the_rest_when_it_has_confirmed_the_first_page() {
    let fleet = large_target_state().await;
    let (api, path) = (&fleet.api, format!("/agents/{}/target-state?mode=incremental", fleet.agent.0));
    let mut applied = BTreeSet::new();
    for _ in 0..LARGE_BUNDLES {
        let page = api.get(&fleet.agent.1, &path).await.expect_status(200).json();
        for revision in page.as_array().unwrap() {
            api.report(&fleet.agent, revision, "SUCCESS").await;
            assert!(applied.insert(text(&revision["id"])), "it was confirmed");
        }
    }
    assert_eq!(applied.len(), LARGE_BUNDLES);
}

#[tokio::test]
async fn a_page_of_encrypted_bundles_that_is_cut_links_to_its_rest() {
    let store = SqliteStore::open(":memory:", None).unwrap();
    store.set_bundle_cipher(BundleCipher::new(EncryptionKey::parse(&"cd".repeat(32)).unwrap(), true));
    let api = Api::on_store(store).await;
    let stack = api.create_stack("web", &api.create_generator("shop").await.0).await;
    let path = format!("/stacks/{stack}/deployment-objects");
    // Four of them are larger than a page as they are stored, and smaller in plain text.
    let comment = "#".repeat(900 * 1024);
    for number in 0..6 {
        let request = json!({"yaml_content": format!("a: {number}\n{comment}\n")});
        api.post(&api.admin, &path, &request).await.expect_status(201);
    }
    assert_eq!(count_in_pages(&api, &path, "", None).await, (6, 2));
}
