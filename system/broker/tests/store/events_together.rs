//! Events that are reported at the same time, and so recorded together.

use futures_util::future::join_all;
use sindri_broker::{RecordKind, StoreError, WriteContext};
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, Entropy, RevisionId, StackId};

use crate::support::{ALL, World, contracts, event, write_context, write_context_with_key};

contracts!(
    events_at_the_same_time_have_results_of_their_own,
    of_events_at_the_same_time_the_last_about_the_newest_revision_counts,
    removals_are_confirmed_together_with_other_outcomes,
);

async fn record_together(
    world: &World,
    reports: Vec<(WriteContext, AgentEvent)>,
) -> Vec<Result<AgentEvent, StoreError>> {
    join_all(reports.into_iter().map(|(context, event)| world.store.record_event(context, event))).await
}

/// An agent that has received a stack, and its revision.
async fn received(world: &World, agent: AgentId, name: &str) -> (StackId, RevisionId) {
    let stack = world.add_stack(name).await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await.id;
    world.poll(agent).await;
    (stack, revision)
}

/// Returns the sequence of the last outcome about a stack with one agent, and whether it is a success.
async fn outcome(world: &World, stack: StackId) -> Option<(i64, bool)> {
    let reports = world.store.get_stack_reports(stack, ALL).await.unwrap();
    reports.assignments[0].outcome.as_ref().map(|outcome| (outcome.sequence.0, outcome.succeeded))
}

async fn events_at_the_same_time_have_results_of_their_own(world: World) {
    let [agent, other] = world.add_agents().await;
    let (stack, revision) = received(&world, agent, "web").await;
    let (_, of_other) = received(&world, other, "api").await;
    world.store.set_leader(other, "one".to_owned()).await.unwrap();
    let keyed = || write_context_with_key("k1");
    let of_process = |name: &str| WriteContext { process: Some(name.to_owned()), ..write_context() };
    let report = |status| event(agent, revision, status);
    let unknown = AgentId::generate(&Entropy::new(|bytes| bytes.fill(3)));
    let missing = RevisionId::generate(&Entropy::new(|bytes| bytes.fill(4)));
    for round in 0..2 {
        let results = record_together(
            &world,
            vec![
                (keyed(), report(EventStatus::Success)),
                (keyed(), report(EventStatus::Success)),
                (keyed(), report(EventStatus::Failure)),
                (write_context(), event(agent, missing, EventStatus::Success)),
                (write_context(), event(unknown, revision, EventStatus::Success)),
                (write_context(), event(agent, of_other, EventStatus::Success)),
                (of_process("two"), event(other, of_other, EventStatus::Success)),
                (of_process("one"), event(other, of_other, EventStatus::Success)),
                (write_context(), report(EventStatus::Failure)),
            ],
        )
        .await;
        let first = results[0].as_ref().unwrap();
        assert_eq!(results[1].as_ref().unwrap(), first, "a repetition gets the first event");
        assert_eq!(results[2], Err(StoreError::IdempotencyKeyMismatch));
        let is_missing = |result: &Result<AgentEvent, StoreError>| {
            matches!(result, Err(StoreError::MissingReference { kind: RecordKind::Revision, .. }))
        };
        assert!(is_missing(&results[3]) && is_missing(&results[5]), "{results:?}");
        assert!(matches!(results[4], Err(StoreError::NotFound { kind: RecordKind::Agent, .. })), "{results:?}");
        assert_eq!(results[6], Err(StoreError::OtherLeader("one".to_owned())));
        assert!(results[7].is_ok() && results[8].is_ok(), "{results:?}");
        let listed = world.store.list_events_of_agent(agent, ALL).await.unwrap();
        assert_eq!((listed.len(), &listed[0]), (2 + round, first), "each is recorded once, in their order");
        assert_eq!(listed.last(), results[8].as_ref().ok());
        assert_eq!(outcome(&world, stack).await.map(|(_, succeeded)| succeeded), Some(false));
    }
}

async fn of_events_at_the_same_time_the_last_about_the_newest_revision_counts(world: World) {
    let [agent] = world.add_agents().await;
    let (stack, older) = received(&world, agent, "web").await;
    let newer = world.submit(stack).await;
    let (old, new) = (|status| event(agent, older, status), |status| event(agent, newer.id, status));
    let (success, failure) = (EventStatus::Success, EventStatus::Failure);
    for (events, succeeded) in [
        (vec![old(success.clone()), new(success.clone()), old(failure.clone())], true),
        (vec![new(success.clone()), new(failure.clone()), old(success.clone())], false),
        (vec![new(failure.clone()), new(success.clone())], true),
        (vec![old(failure)], true),
    ] {
        let reports = events.into_iter().map(|event| (write_context(), event)).collect();
        assert!(record_together(&world, reports).await.iter().all(Result::is_ok));
        assert_eq!(outcome(&world, stack).await, Some((newer.sequence_id.0, succeeded)));
    }
}

async fn removals_are_confirmed_together_with_other_outcomes(world: World) {
    let [agent] = world.add_agents().await;
    let (kept, revision) = received(&world, agent, "kept").await;
    let (removed, _) = received(&world, agent, "removed").await;
    let (deleted, _) = received(&world, agent, "deleted").await;
    world.store.remove_target(write_context(), agent, removed).await.unwrap();
    world.store.delete_stack(write_context(), deleted).await.unwrap();
    let removals: Vec<RevisionId> =
        world.poll(agent).await.into_iter().filter(|(_, is_removal)| *is_removal).map(|(id, _)| id).collect();
    let [first, second] = removals[..] else { panic!("{removals:?}") };
    let success = |revision| (write_context(), event(agent, revision, EventStatus::Success));
    let results =
        record_together(&world, vec![success(first), success(revision), success(second), success(first)]).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(world.poll(agent).await, [(revision, false)], "both removals are confirmed");
    assert!(outcome(&world, kept).await.is_some_and(|(_, succeeded)| succeeded));
}
