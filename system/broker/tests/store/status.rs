//! How stacks are on clusters: levels, since when, and what follows when one of them flips.

use jiff::Timestamp;
use sindri_broker::{AgentReport, AuditFilter, Noun, Stamp, StoreError};
use sindri_model::wire::ConditionStatus::{False, True};
use sindri_model::wire::{ConditionStatus, EventStatus, ReportedCondition, StackStatusReport};
use sindri_model::{AgentId, RevisionId, StackId};

use crate::deliveries::{add, queued, webhook};
use crate::support::{World, at, contracts, stamp};

contracts!(
    the_time_of_a_condition_moves_when_its_status_flips_and_not_otherwise,
    the_same_again_writes_nothing,
    drift_and_blocks_are_announced_when_they_begin,
    a_late_word_about_an_older_revision_changes_nothing,
    what_is_not_the_agents_business_is_refused,
    a_stack_that_was_removed_is_in_no_state,
    agents_that_should_have_it_or_must_remove_it_are_listed,
);

pub fn report(revision: RevisionId, conditions: &[(&str, ConditionStatus, &str)]) -> StackStatusReport {
    let conditions = conditions.iter().map(|(kind, status, message)| ReportedCondition {
        kind: (*kind).to_owned(),
        status: *status,
        reason: "Because".to_owned(),
        message: (*message).to_owned(),
    });
    StackStatusReport { deployment_object_id: revision, conditions: conditions.collect() }
}

async fn say(world: &World, second: i64, pair: (AgentId, StackId), report: StackStatusReport) {
    let stamp = Stamp { at: at(second), ..stamp() };
    world.store.report_status(stamp, pair.0, pair.1, report).await.unwrap();
}

async fn agents(world: &World, stack: StackId) -> Vec<AgentReport> {
    world.store.reports_of_stack(stack).await.unwrap().agents
}

async fn times(world: &World, stack: StackId) -> Vec<(String, Timestamp)> {
    let reports = agents(world, stack).await;
    let conditions = reports[0].said.conditions.iter();
    conditions.map(|condition| (condition.kind.clone(), condition.last_transition_time)).collect()
}

async fn entries(world: &World) -> i64 {
    world.store.audit_logs(AuditFilter::default()).await.unwrap().1
}

/// An agent, a stack that it has received, and the stack's revision.
async fn received(world: &World) -> (AgentId, StackId, RevisionId) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await;
    world.poll(agent).await;
    (agent, stack, revision.id)
}

async fn the_time_of_a_condition_moves_when_its_status_flips_and_not_otherwise(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let pair = (agent, stack);
    let moved = |ready, applied| vec![("Applied".to_owned(), at(applied)), ("Ready".to_owned(), at(ready))];
    say(&world, 1, pair, report(revision, &[("Ready", False, "0 of 3"), ("Applied", True, "")])).await;
    assert_eq!(times(&world, stack).await, moved(1, 1));
    say(&world, 2, pair, report(revision, &[("Applied", True, ""), ("Ready", False, "2 of 3")])).await;
    assert_eq!(times(&world, stack).await, moved(1, 1), "another message is no transition");
    assert_eq!(agents(&world, stack).await[0].said.conditions[1].message, "2 of 3");
    say(&world, 3, pair, report(revision, &[("Applied", True, ""), ("Ready", True, "")])).await;
    assert_eq!(times(&world, stack).await, moved(3, 1));
    let next = world.submit(stack).await.id;
    say(&world, 4, pair, report(next, &[("Applied", True, ""), ("Ready", False, "")])).await;
    assert_eq!(times(&world, stack).await, moved(4, 1), "another revision is no transition");
    say(&world, 5, pair, report(next, &[("Ready", False, "")])).await;
    say(&world, 6, pair, report(next, &[("Ready", False, ""), ("Applied", True, "")])).await;
    assert_eq!(times(&world, stack).await, moved(4, 6), "it was not said meanwhile");
}

async fn the_same_again_writes_nothing(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let said = report(revision, &[("Ready", True, ""), ("Drifted", True, "x")]);
    let before = entries(&world).await;
    say(&world, 1, (agent, stack), said.clone()).await;
    let (noted, known) = (entries(&world).await, agents(&world, stack).await);
    assert_eq!(noted, before + 1);
    let mut turned = said.clone();
    turned.conditions.reverse();
    for again in [said, turned] {
        say(&world, 2, (agent, stack), again).await;
    }
    assert_eq!((entries(&world).await, agents(&world, stack).await), (noted, known));
}

async fn drift_and_blocks_are_announced_when_they_begin(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let hook = add(&world, webhook("all", &["deployment.drifted", "deployment.blocked"])).await;
    for said in [
        &[("Drifted", False, ""), ("Blocked", False, "")][..],
        &[("Drifted", True, "replicas"), ("Blocked", False, "")],
        &[("Drifted", True, "replicas and image"), ("Blocked", False, "")],
        &[("Drifted", False, ""), ("Blocked", True, "12 objects")],
        &[("Drifted", True, "again")],
    ] {
        say(&world, 1, (agent, stack), report(revision, said)).await;
    }
    assert_eq!(queued(&world, hook).await, ["deployment.drifted", "deployment.blocked", "deployment.drifted"]);
    let claim = crate::deliveries::claim("one", at(1));
    let payload = world.store.claim_deliveries(claim).await.unwrap().deliveries[1].delivery.payload.clone();
    let expected = serde_json::json!({
        "agent_id": agent, "stack_id": stack, "deployment_object_id": revision, "reason": "Because",
        "message": "12 objects",
    });
    assert_eq!(payload["data"], expected);
}

async fn a_late_word_about_an_older_revision_changes_nothing(world: World) {
    let (agent, stack, first) = received(&world).await;
    let second = world.submit(stack).await.id;
    say(&world, 1, (agent, stack), report(second, &[("Applied", False, "")])).await;
    let before = (entries(&world).await, agents(&world, stack).await);
    say(&world, 2, (agent, stack), report(first, &[("Applied", True, "")])).await;
    assert_eq!((entries(&world).await, agents(&world, stack).await), before);
}

async fn what_is_not_the_agents_business_is_refused(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let (stranger, other) = (world.add_agent("stranger", &[]).await.unwrap(), world.add_stack("other").await);
    let elsewhere = world.submit(other).await.id;
    let said = |revision| report(revision, &[("Applied", True, "")]);
    let refused = world.store.report_status(stamp(), stranger, stack, said(revision)).await;
    assert!(matches!(refused, Err(StoreError::NotFound { noun: Noun::Stack, .. })), "{refused:?}");
    let refused = world.store.report_status(stamp(), agent, other, said(elsewhere)).await;
    assert!(matches!(refused, Err(StoreError::NotFound { noun: Noun::Stack, .. })), "{refused:?}");
    let refused = world.store.report_status(stamp(), agent, stack, said(elsewhere)).await;
    assert!(matches!(refused, Err(StoreError::MissingReference { noun: Noun::Revision, .. })), "{refused:?}");
    assert_eq!(agents(&world, stack).await[0].said.conditions, []);
}

async fn a_stack_that_was_removed_is_in_no_state(world: World) {
    let (agent, stack, revision) = received(&world).await;
    say(&world, 1, (agent, stack), report(revision, &[("Ready", True, "")])).await;
    world.store.remove_target(stamp(), agent, stack).await.unwrap();
    let removal = world.only_removal(agent).await;
    say(&world, 2, (agent, stack), report(removal, &[("Deleting", True, "")])).await;
    assert_eq!(agents(&world, stack).await[0].said.deployment_object_id, Some(removal));
    world.report(agent, removal, EventStatus::Success).await.unwrap();
    // It had the stack: what it says is taken, and there is nothing to note.
    say(&world, 3, (agent, stack), report(removal, &[("Deleting", True, "")])).await;
    assert_eq!(agents(&world, stack).await, []);
    world.target(agent, stack).await.unwrap();
    let now = agents(&world, stack).await;
    assert_eq!((now.len(), now[0].said.conditions.len(), now[0].said.sequence_id), (1, 0, None));
}

async fn agents_that_should_have_it_or_must_remove_it_are_listed(world: World) {
    let [has, owes, never, gone] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [has, owes, never, gone] {
        world.target(agent, stack).await.unwrap();
    }
    let newest = world.submit(stack).await;
    for agent in [has, owes, gone] {
        world.poll(agent).await;
    }
    world.store.remove_target(stamp(), owes, stack).await.unwrap();
    world.store.remove_target(stamp(), never, stack).await.unwrap();
    world.store.delete_agent(stamp(), gone).await.unwrap();
    let reports = world.store.reports_of_stack(stack).await.unwrap();
    assert_eq!(reports.newest.map(|newest| newest.id), Some(newest.id));
    let listed: Vec<_> = reports.agents.iter().map(|report| (report.said.agent_id, report.owes.is_some())).collect();
    assert_eq!(listed, [(has, false), (owes, true)]);
    world.store.delete_stack(stamp(), stack).await.unwrap();
    let reports = world.store.reports_of_stack(stack).await.unwrap();
    assert!(reports.newest.unwrap().is_deletion_marker);
    assert!(reports.agents.len() == 2 && reports.agents.iter().all(|report| report.owes.is_some()));
    for agent in [has, owes] {
        let removal = world.only_removal(agent).await;
        world.report(agent, removal, EventStatus::Success).await.unwrap();
    }
    assert!(matches!(world.store.reports_of_stack(stack).await, Err(StoreError::NotFound { noun: Noun::Stack, .. })));
}
