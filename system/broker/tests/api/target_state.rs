//! Target states, case by case. The property over all cases is in `target_state_model.rs`.

use axum::body::Body;
use http::Request;
use serde_json::Value;

use crate::support::{Fleet, TestResponse, text};

fn sequence(revision: &Value) -> i64 {
    revision["sequence_id"].as_i64().unwrap()
}

fn is_marker(revision: &Value) -> bool {
    revision["is_deletion_marker"].as_bool().unwrap()
}

async fn poll_with(fleet: &Fleet, etag: &str) -> TestResponse {
    let request = Request::get(format!("/api/v1/agents/{}/target-state", fleet.agent.0))
        .header("authorization", &fleet.agent.1)
        .header("if-none-match", etag)
        .body(Body::empty())
        .unwrap();
    fleet.api.send(request).await
}

#[tokio::test]
async fn the_newest_revision_of_each_stack_is_returned_in_ascending_order() {
    let fleet = Fleet::new().await;
    let second = fleet.api.create_stack("second", &fleet.generator.0).await;
    fleet.api.target(&fleet.agent.0, &second).await;
    assert_eq!(fleet.poll().await, Vec::<Value>::new());
    fleet.api.submit(&fleet.stack, false).await;
    let of_second = fleet.api.submit(&second, false).await;
    fleet.api.submit(&fleet.stack, false).await;
    let newest = fleet.api.submit(&fleet.stack, false).await;
    assert_eq!(fleet.poll().await, [of_second, newest]);
}

#[tokio::test]
async fn the_same_content_again_has_a_new_sequence_and_the_same_checksum() {
    let fleet = Fleet::new().await;
    let (first, second) = (fleet.api.submit(&fleet.stack, false).await, fleet.api.submit(&fleet.stack, false).await);
    assert_eq!(first["yaml_checksum"], second["yaml_checksum"]);
    assert!(sequence(&second) > sequence(&first));
    assert_ne!(first["id"], second["id"]);
}

#[tokio::test]
async fn a_deleted_stack_leaves_a_marker_until_the_agent_confirms_it() {
    let fleet = Fleet::new().await;
    let first = fleet.api.submit(&fleet.stack, false).await;
    fleet.poll().await;
    fleet.api.delete(&format!("/stacks/{}", fleet.stack)).await.expect_status(204);
    // The agent may be offline for any time, with other changes meanwhile.
    let other = fleet.api.create_stack("web", &fleet.generator.0).await;
    fleet.api.submit(&other, false).await;
    let state = fleet.poll().await;
    assert_eq!(state.len(), 1);
    assert!(is_marker(&state[0]) && sequence(&state[0]) > sequence(&first));
    assert_eq!(text(&state[0]["stack_id"]), fleet.stack);
    fleet.api.report(&fleet.agent, &state[0], "FAILURE").await;
    assert_eq!(fleet.poll().await, state, "a failure confirms nothing");
    fleet.api.report(&fleet.agent, &state[0], "SUCCESS").await;
    assert_eq!(fleet.poll().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_deleted_stack_that_the_agent_never_received_is_not_in_its_target_state() {
    let fleet = Fleet::new().await;
    fleet.api.submit(&fleet.stack, false).await;
    // The administrator reads the target state; the agent has not polled.
    let path = format!("/agents/{}/target-state", fleet.agent.0);
    assert_eq!(fleet.api.get(&fleet.api.admin, &path).await.expect_status(200).json().as_array().unwrap().len(), 1);
    fleet.api.untarget(&fleet.agent.0, &fleet.stack).await;
    assert_eq!(fleet.poll().await, Vec::<Value>::new());
    fleet.api.target(&fleet.agent.0, &fleet.stack).await;
    fleet.api.submit(&fleet.stack, true).await;
    assert_eq!(fleet.poll().await, Vec::<Value>::new());
    fleet.api.delete(&format!("/stacks/{}", fleet.stack)).await.expect_status(204);
    assert_eq!(fleet.poll().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_removed_target_becomes_a_removal_for_that_agent_only() {
    let fleet = Fleet::new().await;
    let west = fleet.api.create_agent("west", &[&fleet.generator.0]).await;
    fleet.api.target(&west.0, &fleet.stack).await;
    let revision = fleet.api.submit(&fleet.stack, false).await;
    assert_eq!(fleet.poll().await, fleet.api.poll(&west).await);
    fleet.api.untarget(&fleet.agent.0, &fleet.stack).await;
    let removal = fleet.poll().await;
    assert!(removal.len() == 1 && is_marker(&removal[0]) && sequence(&removal[0]) > sequence(&revision));
    assert_eq!(fleet.api.poll(&west).await, std::slice::from_ref(&revision));
    let listed = fleet.api.get(&fleet.api.admin, &format!("/stacks/{}/deployment-objects", fleet.stack)).await;
    assert_eq!(listed.json(), serde_json::json!([revision]), "a removal for one agent is no revision of the stack");

    // The removal can be read by its id, by that agent only.
    let path = format!("/deployment-objects/{}", text(&removal[0]["id"]));
    assert_eq!(fleet.api.get(&fleet.agent.1, &path).await.expect_status(200).json(), removal[0]);
    fleet.api.get(&west.1, &path).await.expect_status(403);
    let event = crate::support::event(&west.0, &text(&removal[0]["id"]), "SUCCESS");
    fleet.api.post(&west.1, &format!("/agents/{}/events", west.0), &event).await.expect_status(422);
    assert_eq!(fleet.poll().await, removal, "another agent confirmed it");
    fleet.api.report(&fleet.agent, &removal[0], "SUCCESS").await;
    assert_eq!(fleet.poll().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_restored_target_cancels_the_removal_and_needs_a_new_one_later() {
    for confirm_first in [false, true] {
        let fleet = Fleet::new().await;
        let revision = fleet.api.submit(&fleet.stack, false).await;
        fleet.poll().await;
        fleet.api.untarget(&fleet.agent.0, &fleet.stack).await;
        let first = fleet.poll().await;
        if confirm_first {
            fleet.api.report(&fleet.agent, &first[0], "SUCCESS").await;
        }
        fleet.api.target(&fleet.agent.0, &fleet.stack).await;
        assert_eq!(fleet.poll().await, [revision]);
        // A late confirmation of the old removal does not count for what was received since.
        fleet.api.report(&fleet.agent, &first[0], "SUCCESS").await;
        fleet.api.untarget(&fleet.agent.0, &fleet.stack).await;
        let second = fleet.poll().await;
        assert!(second.len() == 1 && is_marker(&second[0]) && sequence(&second[0]) > sequence(&first[0]));
        fleet.api.report(&fleet.agent, &first[0], "SUCCESS").await;
        assert_eq!(fleet.poll().await, second);
    }
}

#[tokio::test]
async fn an_unchanged_poll_is_304_and_each_change_ends_that() {
    let fleet = Fleet::new().await;
    let path = format!("/agents/{}/target-state", fleet.agent.0);
    let first = fleet.api.get(&fleet.agent.1, &path).await.expect_status(200);
    assert_eq!(first.header("x-sindri-epoch"), "1");
    let mut etag = first.header("etag").to_owned();
    for step in 0..4 {
        let unchanged = poll_with(&fleet, &etag).await.expect_status(304);
        assert_eq!((unchanged.header("etag"), unchanged.header("x-sindri-epoch")), (etag.as_str(), "1"));
        assert!(unchanged.body.is_empty());
        match step {
            0 => drop(fleet.api.submit(&fleet.stack, false).await),
            1 => fleet.api.untarget(&fleet.agent.0, &fleet.stack).await,
            2 => fleet.api.report(&fleet.agent, &fleet.poll().await[0], "SUCCESS").await,
            _ => fleet.api.target(&fleet.agent.0, &fleet.stack).await,
        }
        let changed = poll_with(&fleet, &etag).await.expect_status(200);
        assert_ne!(changed.header("etag"), etag, "step {step}");
        etag = changed.header("etag").to_owned();
    }
    poll_with(&fleet, "\"something else\"").await.expect_status(200);
}
