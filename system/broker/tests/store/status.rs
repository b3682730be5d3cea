//! Status of stacks: conditions, their transition times, and the messages that they cause.

use jiff::Timestamp;
use sindri_broker::{AuditFilter, RecordKind, StackReports, StoreError, WriteContext};
use sindri_model::wire::ConditionStatus::{False, True};
use sindri_model::wire::{
    AgentStackStatus, ConditionStatus, DeploymentObjectHealthUpdate, EventStatus, HealthStatus, HealthStatusUpdate,
    ReportedCondition, StackStatusReport,
};
use sindri_model::{AgentId, RevisionId, StackId};

use crate::deliveries::{add, queued, webhook};
use crate::support::{ALL, World, at, contracts, event, write_context};

contracts!(
    the_transition_time_of_a_condition_changes_with_its_status_only,
    a_repeated_status_writes_nothing,
    drift_and_blocks_are_published_when_they_begin,
    a_late_status_of_an_older_revision_changes_nothing,
    a_status_of_an_unassigned_stack_or_revision_is_rejected,
    only_the_leader_of_an_agent_reports,
    a_removed_stack_has_no_status,
    an_agent_reads_its_own_last_report,
    agents_that_should_have_or_must_remove_the_stack_are_listed,
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

async fn record(world: &World, second: i64, pair: (AgentId, StackId), report: StackStatusReport) {
    let context = WriteContext { time: at(second), ..write_context() };
    world.store.record_stack_status(context, pair.0, pair.1, report).await.unwrap();
}

async fn agents(world: &World, stack: StackId) -> Vec<AgentStackStatus> {
    world.store.get_stack_reports(stack, ALL).await.unwrap().agents
}

async fn times(world: &World, stack: StackId) -> Vec<(String, Timestamp)> {
    let reports = agents(world, stack).await;
    let conditions = reports[0].conditions.iter();
    conditions.map(|condition| (condition.kind.clone(), condition.last_transition_time)).collect()
}

async fn entries(world: &World) -> i64 {
    world.store.list_audit_log(AuditFilter::default()).await.unwrap().1
}

/// An agent, a stack that it has received, and the stack's revision.
async fn received(world: &World) -> (AgentId, StackId, RevisionId) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await;
    world.poll(agent).await;
    (agent, stack, revision.id)
}

async fn the_transition_time_of_a_condition_changes_with_its_status_only(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let pair = (agent, stack);
    let moved = |ready, applied| vec![("Applied".to_owned(), at(applied)), ("Ready".to_owned(), at(ready))];
    record(&world, 1, pair, report(revision, &[("Ready", False, "0 of 3"), ("Applied", True, "")])).await;
    assert_eq!(times(&world, stack).await, moved(1, 1));
    record(&world, 2, pair, report(revision, &[("Applied", True, ""), ("Ready", False, "2 of 3")])).await;
    assert_eq!(times(&world, stack).await, moved(1, 1), "another message is not a transition");
    assert_eq!(agents(&world, stack).await[0].conditions[1].message, "2 of 3");
    record(&world, 3, pair, report(revision, &[("Applied", True, ""), ("Ready", True, "")])).await;
    assert_eq!(times(&world, stack).await, moved(3, 1));
    let next = world.submit(stack).await.id;
    record(&world, 4, pair, report(next, &[("Applied", True, ""), ("Ready", False, "")])).await;
    assert_eq!(times(&world, stack).await, moved(4, 1), "another revision is not a transition");
    record(&world, 5, pair, report(next, &[("Ready", False, "")])).await;
    record(&world, 6, pair, report(next, &[("Ready", False, ""), ("Applied", True, "")])).await;
    assert_eq!(times(&world, stack).await, moved(4, 6), "the condition was missing meanwhile");
}

async fn a_repeated_status_writes_nothing(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let reported = report(revision, &[("Ready", True, ""), ("Drifted", True, "x")]);
    let before = entries(&world).await;
    record(&world, 1, (agent, stack), reported.clone()).await;
    let (entry_count, known) = (entries(&world).await, agents(&world, stack).await);
    assert_eq!(entry_count, before + 1);
    let mut reversed = reported.clone();
    reversed.conditions.reverse();
    for again in [reported, reversed] {
        record(&world, 2, (agent, stack), again).await;
    }
    assert_eq!((entries(&world).await, agents(&world, stack).await), (entry_count, known));
}

async fn drift_and_blocks_are_published_when_they_begin(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let hook = add(&world, webhook("all", &["deployment.drifted", "deployment.blocked"])).await;
    for reported in [
        &[("Drifted", False, ""), ("Blocked", False, "")][..],
        &[("Drifted", True, "replicas"), ("Blocked", False, "")],
        &[("Drifted", True, "replicas and image"), ("Blocked", False, "")],
        &[("Drifted", False, ""), ("Blocked", True, "12 objects")],
        &[("Drifted", True, "again")],
    ] {
        record(&world, 1, (agent, stack), report(revision, reported)).await;
    }
    assert_eq!(queued(&world, hook).await, ["deployment.drifted", "deployment.blocked", "deployment.drifted"]);
    let request = crate::deliveries::acquire("one", at(1));
    let payload = world.store.acquire_deliveries(request).await.unwrap().deliveries[1].delivery.payload.clone();
    let expected = serde_json::json!({
        "agent_id": agent, "stack_id": stack, "deployment_object_id": revision, "reason": "Because",
        "message": "12 objects",
    });
    assert_eq!(payload["data"], expected);
}

async fn a_late_status_of_an_older_revision_changes_nothing(world: World) {
    let (agent, stack, first) = received(&world).await;
    let second = world.submit(stack).await.id;
    record(&world, 1, (agent, stack), report(second, &[("Applied", False, "")])).await;
    let before = (entries(&world).await, agents(&world, stack).await);
    record(&world, 2, (agent, stack), report(first, &[("Applied", True, "")])).await;
    assert_eq!((entries(&world).await, agents(&world, stack).await), before);
}

async fn a_status_of_an_unassigned_stack_or_revision_is_rejected(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let (unregistered, other) = (world.add_agent("unregistered", &[]).await.unwrap(), world.add_stack("other").await);
    let elsewhere = world.submit(other).await.id;
    let reported = |revision| report(revision, &[("Applied", True, "")]);
    let rejected = world.store.record_stack_status(write_context(), unregistered, stack, reported(revision)).await;
    assert!(matches!(rejected, Err(StoreError::NotFound { kind: RecordKind::Stack, .. })), "{rejected:?}");
    let rejected = world.store.record_stack_status(write_context(), agent, other, reported(elsewhere)).await;
    assert!(matches!(rejected, Err(StoreError::NotFound { kind: RecordKind::Stack, .. })), "{rejected:?}");
    let rejected = world.store.record_stack_status(write_context(), agent, stack, reported(elsewhere)).await;
    assert!(matches!(rejected, Err(StoreError::MissingReference { kind: RecordKind::Revision, .. })), "{rejected:?}");
    assert_eq!(agents(&world, stack).await[0].conditions, []);
}

/// A process that has lost the Lease without knowing it may report until it reads the Lease again.
async fn only_the_leader_of_an_agent_reports(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let health = || {
        let checked = DeploymentObjectHealthUpdate {
            id: revision,
            status: HealthStatus::Healthy,
            summary: None,
            checked_at: at(1),
        };
        HealthStatusUpdate { deployment_objects: vec![checked] }
    };
    let report_all = async |process: Option<&str>| {
        let context = || WriteContext { process: process.map(str::to_owned), ..write_context() };
        let conditions = report(revision, &[("Applied", True, "")]);
        [
            world.store.record_event(context(), event(agent, revision, EventStatus::Failure)).await.map(drop),
            world.store.record_stack_status(context(), agent, stack, conditions).await,
            world.store.record_health(context(), agent, health()).await,
        ]
    };
    // No process is the leader yet, so that each may report that the cluster cannot be reached.
    assert_eq!(report_all(Some("one")).await, [Ok(()), Ok(()), Ok(())]);
    world.store.set_leader(agent, "two".to_owned()).await.unwrap();
    let rejected = || Err(StoreError::OtherLeader("two".to_owned()));
    assert_eq!(report_all(Some("one")).await, [rejected(), rejected(), rejected()]);
    assert_eq!(report_all(Some("two")).await, [Ok(()), Ok(()), Ok(())]);
    // Other clients of the published API do not name their process.
    assert_eq!(report_all(None).await, [Ok(()), Ok(()), Ok(())]);
    world.store.set_leader(agent, "one".to_owned()).await.unwrap();
    assert_eq!(report_all(Some("one")).await, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(world.store.list_events_of_agent(agent, ALL).await.unwrap().len(), 4);
    world.store.delete_agent(write_context(), agent).await.unwrap();
    let missing = world.store.set_leader(agent, "one".to_owned()).await;
    assert_eq!(missing, Err(StoreError::NotFound { kind: RecordKind::Agent, name: agent.to_string() }));
}

async fn an_agent_reads_its_own_last_report(world: World) {
    let (agent, stack, revision) = received(&world).await;
    let unreported = world.store.get_stack_report(agent, stack).await;
    assert_eq!(unreported, Err(StoreError::NotFound { kind: RecordKind::StackStatus, name: stack.to_string() }));
    let sent = report(revision, &[("Applied", True, "")]);
    record(&world, 1, (agent, stack), sent.clone()).await;
    assert_eq!(world.store.get_stack_report(agent, stack).await, Ok(sent));
}

async fn a_removed_stack_has_no_status(world: World) {
    let (agent, stack, revision) = received(&world).await;
    record(&world, 1, (agent, stack), report(revision, &[("Ready", True, "")])).await;
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    let removal = world.only_removal(agent).await;
    record(&world, 2, (agent, stack), report(removal, &[("Deleting", True, "")])).await;
    assert_eq!(agents(&world, stack).await[0].deployment_object_id, Some(removal));
    world.report(agent, removal, EventStatus::Success).await.unwrap();
    // The agent had the stack: its report is accepted, and changes nothing.
    record(&world, 3, (agent, stack), report(removal, &[("Deleting", True, "")])).await;
    assert_eq!(agents(&world, stack).await, []);
    world.target(agent, stack).await.unwrap();
    let now = agents(&world, stack).await;
    assert_eq!((now.len(), now[0].conditions.len(), now[0].sequence_id), (1, 0, None));
}

/// Returns the number of agents, and of those that have to remove the stack.
fn count_removals(reports: &StackReports) -> (usize, usize) {
    let removals = reports.assignments.iter().filter(|reported| reported.pending_removal.is_some());
    (reports.assignments.len(), removals.count())
}

async fn agents_that_should_have_or_must_remove_the_stack_are_listed(world: World) {
    let [has, removes, never, deleted] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [has, removes, never, deleted] {
        world.target(agent, stack).await.unwrap();
    }
    let newest = world.submit(stack).await;
    for agent in [has, removes, deleted] {
        world.poll(agent).await;
    }
    world.store.remove_target(write_context(), removes, stack).await.unwrap();
    world.store.remove_target(write_context(), never, stack).await.unwrap();
    world.store.delete_agent(write_context(), deleted).await.unwrap();
    let reports = world.store.get_stack_reports(stack, ALL).await.unwrap();
    assert_eq!(reports.newest.map(|newest| newest.id), Some(newest.id));
    assert_eq!(reports.agents.iter().map(|status| status.agent_id).collect::<Vec<_>>(), [has, removes]);
    assert_eq!(count_removals(&reports), (2, 1));
    world.store.delete_stack(write_context(), stack).await.unwrap();
    let reports = world.store.get_stack_reports(stack, ALL).await.unwrap();
    assert!(reports.newest.unwrap().is_deletion_marker);
    assert_eq!((reports.agents.len(), count_removals(&reports)), (2, (2, 2)));
    for agent in [has, removes] {
        let removal = world.only_removal(agent).await;
        world.report(agent, removal, EventStatus::Success).await.unwrap();
    }
    assert!(matches!(
        world.store.get_stack_reports(stack, ALL).await,
        Err(StoreError::NotFound { kind: RecordKind::Stack, .. })
    ));
}
