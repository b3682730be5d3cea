//! Overview of stacks on clusters, and numbers of revisions, on each kind of store.

use sindri_broker::{OverviewFilter, OverviewRecords, ReportedPhase, RetentionCutoffs, WriteContext};
use sindri_model::wire::ConditionStatus::{False, True};
use sindri_model::wire::EventStatus;
use sindri_model::{AgentId, GeneratorId, Sequence, StackId};

use crate::status::report;
use crate::support::{ALL, World, at, contracts, entropy, event, revision, write_context};

contracts!(
    the_summary_of_a_report_is_stored_and_removed_with_the_stack,
    a_failure_has_the_message_of_its_event_until_conditions_follow,
    reports_count_again_after_a_removal_that_was_cancelled,
    a_deleted_stack_is_there_until_its_removal_is_confirmed,
    a_filter_leaves_out_other_generators_and_stacks,
    numbers_of_revisions_count_up_in_each_stack_and_stay_after_retention,
    the_number_of_a_kept_revision_does_not_move_when_later_ones_are_deleted,
);

async fn read(world: &World, generator: Option<GeneratorId>, stack: Option<StackId>) -> OverviewRecords {
    world.store.read_overview(OverviewFilter { generator, stack, page: ALL }).await.unwrap()
}

/// Returns the sequence and the phase of the last report of each assignment.
fn phases(records: &OverviewRecords) -> Vec<Option<(Sequence, ReportedPhase)>> {
    let summaries = records.assignments.iter().map(|assignment| assignment.reported.summary.as_ref());
    summaries.map(|summary| summary.map(|(sequence, summary)| (*sequence, summary.phase))).collect()
}

async fn received(world: &World) -> (AgentId, StackId) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    (agent, stack)
}

async fn the_summary_of_a_report_is_stored_and_removed_with_the_stack(world: World) {
    let (agent, stack) = received(&world).await;
    let first = world.submit(stack).await;
    world.poll(agent).await;
    let context = |second| WriteContext { time: at(second), ..write_context() };
    let failed = report(first.id, &[("Applied", False, "no room")]);
    world.store.record_stack_status(context(3), agent, stack, failed).await.unwrap();
    for filter in [None, Some(stack)] {
        let records = read(&world, None, filter).await;
        assert_eq!(phases(&records), [Some((first.sequence_id, ReportedPhase::Failed))]);
        let summary = &records.assignments[0].reported.summary.as_ref().unwrap().1;
        assert_eq!((summary.since, summary.message.as_deref()), (Some(at(3)), Some("no room")));
    }
    let ready = report(first.id, &[("Applied", True, ""), ("Ready", True, "")]);
    world.store.record_stack_status(context(4), agent, stack, ready).await.unwrap();
    assert_eq!(phases(&read(&world, None, None).await), [Some((first.sequence_id, ReportedPhase::Ready))]);
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    let removal = world.only_removal(agent).await;
    assert!(read(&world, None, None).await.assignments[0].reported.pending_removal.is_some());
    world.report(agent, removal, EventStatus::Success).await.unwrap();
    assert!(read(&world, None, None).await.assignments.is_empty());
    world.target(agent, stack).await.unwrap();
    assert_eq!(phases(&read(&world, None, None).await), [None], "the report was about the removed stack");
}

async fn a_failure_has_the_message_of_its_event_until_conditions_follow(world: World) {
    let (agent, stack) = received(&world).await;
    let first = world.submit(stack).await;
    world.poll(agent).await;
    let mut failed = event(agent, first.id, EventStatus::Failure);
    failed.message = Some("no room".to_owned());
    world.store.record_event(write_context(), failed).await.unwrap();
    let outcome = read(&world, None, None).await.assignments[0].reported.outcome.clone().unwrap();
    assert_eq!((outcome.sequence, outcome.succeeded), (first.sequence_id, false));
    assert_eq!((outcome.reported_at, outcome.message.as_deref()), (Some(at(1)), Some("no room")));
    let conditions = report(first.id, &[("Applied", True, "")]);
    world.store.record_stack_status(write_context(), agent, stack, conditions).await.unwrap();
    assert_eq!(read(&world, None, None).await.assignments[0].reported.outcome, None);
}

async fn reports_count_again_after_a_removal_that_was_cancelled(world: World) {
    let (agent, stack) = received(&world).await;
    let first = world.submit(stack).await;
    world.poll(agent).await;
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    let removal = world.only_removal(agent).await;
    let waits = || report(removal, &[("Deleting", True, "a finalizer")]);
    world.store.record_stack_status(write_context(), agent, stack, waits()).await.unwrap();
    world.report(agent, removal, EventStatus::Failure).await.unwrap();
    world.target(agent, stack).await.unwrap();
    // Sent before the agent knew of it.
    world.store.record_stack_status(write_context(), agent, stack, waits()).await.unwrap();
    world.report(agent, removal, EventStatus::Failure).await.unwrap();
    assert_eq!(read(&world, None, None).await.assignments[0].reported.outcome, None);
    world.report(agent, first.id, EventStatus::Success).await.unwrap();
    let outcome = read(&world, None, None).await.assignments[0].reported.outcome.clone().unwrap();
    assert_eq!((outcome.sequence, outcome.succeeded), (first.sequence_id, true));
    let ready = report(first.id, &[("Applied", True, ""), ("Ready", True, "")]);
    world.store.record_stack_status(write_context(), agent, stack, ready).await.unwrap();
    assert_eq!(phases(&read(&world, None, None).await), [Some((first.sequence_id, ReportedPhase::Ready))]);
}

async fn a_deleted_stack_is_there_until_its_removal_is_confirmed(world: World) {
    let (agent, stack) = received(&world).await;
    world.submit(stack).await;
    world.poll(agent).await;
    world.store.delete_stack(write_context(), stack).await.unwrap();
    for filter in [None, Some(stack)] {
        let records = read(&world, None, filter).await;
        assert!(records.stacks[0].stack.deleted_at.is_some());
        assert_eq!(records.stacks[0].newest.map(|newest| (newest.number, newest.is_deletion_marker)), Some((2, true)));
        assert_eq!(records.assignments.len(), 1);
    }
    let removal = world.only_removal(agent).await;
    world.report(agent, removal, EventStatus::Success).await.unwrap();
    let records = read(&world, None, None).await;
    assert!(records.stacks.is_empty() && records.assignments.is_empty());
    assert_eq!(records.agents.len(), 1);
}

async fn a_filter_leaves_out_other_generators_and_stacks(world: World) {
    let (agent, stack) = received(&world).await;
    let other = GeneratorId::generate(&entropy());
    world.add_generator(other, "other").await;
    let other_agent = world.add_agent("other-agent", &[other]).await.unwrap();
    let second = world.add_stack("second").await;
    world.target(agent, second).await.unwrap();
    let names = |records: &OverviewRecords| -> Vec<String> {
        records.stacks.iter().map(|known| known.stack.name.clone()).collect()
    };
    let agents = |records: &OverviewRecords| -> Vec<AgentId> { records.agents.iter().map(|agent| agent.id).collect() };
    let own = read(&world, Some(world.generator), None).await;
    assert_eq!((names(&own), agents(&own)), (vec!["second".to_owned(), "web".to_owned()], vec![agent]));
    let foreign = read(&world, Some(other), None).await;
    assert_eq!((names(&foreign), agents(&foreign)), (Vec::new(), vec![other_agent]));
    let one = read(&world, None, Some(stack)).await;
    assert_eq!((names(&one), one.assignments.len()), (vec!["web".to_owned()], 1));
    assert!(names(&read(&world, Some(other), Some(stack)).await).is_empty());
}

async fn numbers_of_revisions_count_up_in_each_stack_and_stay_after_retention(world: World) {
    let (_, stack) = received(&world).await;
    let other = world.add_stack("other").await;
    let submit = async |stack, second| {
        let context = WriteContext { time: at(second), ..write_context() };
        world.store.append_revision(context, revision(stack, "a: 1")).await.unwrap();
    };
    for second in 0..4 {
        submit(stack, second).await;
        submit(other, second).await;
    }
    let numbers = async || -> Vec<i64> {
        world.store.list_history(stack, ALL).await.unwrap().iter().map(|revision| revision.number).collect()
    };
    assert_eq!(numbers().await, [4, 3, 2, 1]);
    let cutoffs = RetentionCutoffs { revisions: Some(at(2)), ..RetentionCutoffs::default() };
    assert!(world.store.purge(cutoffs, 100).await.unwrap() > 0);
    assert_eq!(numbers().await, [4, 3]);
    submit(stack, 9).await;
    assert_eq!(numbers().await, [5, 4, 3]);
    let newest = read(&world, None, Some(stack)).await.stacks[0].newest.unwrap();
    assert_eq!((newest.number, newest.submitted_at), (5, at(9)));
}

async fn the_number_of_a_kept_revision_does_not_move_when_later_ones_are_deleted(world: World) {
    let (agent, stack) = received(&world).await;
    let first = world.submit(stack).await;
    world.poll(agent).await;
    // The report keeps its revision.
    let applied = report(first.id, &[("Applied", True, "")]);
    world.store.record_stack_status(write_context(), agent, stack, applied).await.unwrap();
    world.submit(stack).await;
    world.submit_marker(stack).await;
    world.submit(stack).await;
    let numbers = async || -> Vec<(i64, Sequence)> {
        let history = world.store.list_history(stack, ALL).await.unwrap();
        history.iter().map(|revision| (revision.number, revision.sequence_id)).collect()
    };
    let before = numbers().await;
    assert_eq!(before.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4, 3, 2, 1]);
    let cutoffs = RetentionCutoffs { revisions: Some(at(1)), ..RetentionCutoffs::default() };
    while world.store.purge(cutoffs.clone(), 100).await.unwrap() > 0 {}
    assert_eq!(numbers().await, [before[0], before[3]], "revisions 2 and 3 are deleted");
}
