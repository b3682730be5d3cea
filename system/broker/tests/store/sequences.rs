//! Sequences, epochs, changes since a position, and idempotency keys.

use futures_util::future::join_all;
use sindri_broker::{NewRevision, Page, RecordKind, RestoreEvidence, StoreChange, StoreError, WriteContext};
use sindri_model::wire::EventStatus;
use sindri_model::{Epoch, GeneratorId, Sequence};

use crate::support::{
    ALL, World, at, contracts, entropy, event, revision, stack, write_context, write_context_with_key,
};

contracts!(
    sequences_increase_and_lists_are_in_their_order,
    a_new_epoch_is_above_everything_before_it,
    a_repeated_request_creates_nothing,
    an_idempotency_key_used_for_another_request_is_rejected,
    an_idempotency_key_expires,
    another_origin_of_the_database_begins_one_epoch,
    a_counter_below_a_committed_number_begins_an_epoch_above_it,
    changes_since_a_position_are_complete_and_exact,
    errors_name_the_missing_or_existing_record,
);

async fn sequences_increase_and_lists_are_in_their_order(world: World) {
    let [_] = world.add_agents().await;
    let (one, two) = (world.add_stack("one").await, world.add_stack("two").await);
    let mut submitted = Vec::new();
    for stack in [one, two, one, one, two] {
        submitted.push(world.submit(stack).await);
    }
    assert!(submitted.windows(2).all(|pair| pair[0].sequence_id < pair[1].sequence_id));
    let of_one: Vec<_> = submitted.iter().filter(|revision| revision.stack_id == one).cloned().collect();
    assert_eq!(world.store.list_revisions(one, ALL).await.unwrap(), of_one);
    let page = Page { after: Some(of_one[0].id.to_string()), limit: 1 };
    assert_eq!(world.store.list_revisions(one, page).await.unwrap(), of_one[1..2]);
    assert_eq!(world.store.get_revision(of_one[2].id).await.unwrap().revision, of_one[2]);
}

async fn a_new_epoch_is_above_everything_before_it(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let old = world.submit(stack).await;
    let before = world.store.deliver_target_state(agent).await.unwrap();
    let position = world.store.begin_epoch(write_context(), Epoch(1), "a test".to_owned()).await.unwrap();
    assert_eq!(position.epoch, Epoch(2));
    let again = world.store.begin_epoch(write_context(), Epoch(1), "a repetition".to_owned()).await.unwrap();
    assert_eq!(again.epoch, Epoch(2), "a second broker has detected the same restore");
    let after = world.store.deliver_target_state(agent).await.unwrap();
    assert!(after.version > before.version);
    assert_eq!((after.epoch, after.revisions[0].revision.id), (Epoch(2), old.id));
    let new = world.submit(stack).await;
    assert_eq!((old.sequence_id.epoch(), new.sequence_id.epoch()), (Epoch(1), Epoch(2)));
    assert_eq!(world.store.get_position().await.unwrap().epoch, Epoch(2));
}

async fn a_repeated_request_creates_nothing(world: World) {
    let [agent] = world.add_agents().await;
    let first = world.store.create_stack(write_context_with_key("s"), stack("web", world.generator)).await.unwrap();
    let second = world.store.create_stack(write_context_with_key("s"), stack("web", world.generator)).await.unwrap();
    assert_eq!(first.id, second.id);
    world.target(agent, first.id).await.unwrap();
    let one = world.store.append_revision(write_context_with_key("r"), revision(first.id, "a: 1")).await.unwrap();
    let two = world.store.append_revision(write_context_with_key("r"), revision(first.id, "a: 1")).await.unwrap();
    assert_eq!(one, two);
    world.poll(agent).await;
    let report = || world.store.record_event(write_context_with_key("e"), event(agent, one.id, EventStatus::Failure));
    assert_eq!(report().await.unwrap().id, report().await.unwrap().id);
    assert_eq!(world.store.list_events_of_agent(agent, ALL).await.unwrap().len(), 1);
}

async fn an_idempotency_key_used_for_another_request_is_rejected(world: World) {
    let [agent] = world.add_agents().await;
    let create = |name: &str| world.store.create_stack(write_context_with_key("k"), stack(name, world.generator));
    let created = create("web").await.unwrap();
    let submit = |key, stack, text| world.store.append_revision(write_context_with_key(key), revision(stack, text));
    assert_eq!(submit("k", created.id, "a: 1").await.unwrap_err(), StoreError::IdempotencyKeyMismatch);
    assert_eq!(world.store.list_revisions(created.id, ALL).await.unwrap(), []);
    assert_eq!(create("other").await.unwrap_err(), StoreError::IdempotencyKeyMismatch);
    let other = world.add_stack("other").await;
    submit("r", created.id, "a: 1").await.unwrap();
    let marker = NewRevision { is_deletion_marker: true, ..revision(created.id, "a: 1") };
    for mismatch in [
        submit("r", created.id, "a: 2").await,
        submit("r", other, "a: 1").await,
        world.store.append_revision(write_context_with_key("r"), marker).await,
    ] {
        assert_eq!(mismatch.unwrap_err(), StoreError::IdempotencyKeyMismatch);
    }
    let results = join_all(["a: 1", "a: 2"].map(|text| submit("together", other, text))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    world.target(agent, created.id).await.unwrap();
    world.poll(agent).await;
    let reported = world.store.list_revisions(created.id, ALL).await.unwrap()[0].id;
    let report = |status| world.store.record_event(write_context_with_key("e"), event(agent, reported, status));
    report(EventStatus::Failure).await.unwrap();
    assert_eq!(report(EventStatus::Success).await.unwrap_err(), StoreError::IdempotencyKeyMismatch);
}

async fn an_idempotency_key_expires(world: World) {
    let [_] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let submit = |second, text| {
        let context = WriteContext { time: at(second), ..write_context_with_key("k") };
        world.store.append_revision(context, revision(stack, text))
    };
    let week = 7 * 24 * 60 * 60;
    let first = submit(0, "a: 1").await.unwrap();
    assert_eq!(submit(week, "a: 1").await.unwrap(), first);
    let second = submit(week + 1, "a: 2").await.unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(submit(week + 2, "a: 2").await.unwrap(), second, "the key belongs to the newer request");
}

async fn another_origin_of_the_database_begins_one_epoch(world: World) {
    let mut begun = Vec::new();
    for origin in ["a/1", "a/1", "a/2", "a/2"] {
        let evidence = RestoreEvidence { origin: Some(origin.to_owned()), ..RestoreEvidence::default() };
        let position = world.store.record_origin(write_context(), evidence).await.unwrap();
        begun.push(position.map(|position| position.epoch));
    }
    assert_eq!(begun, [None, None, Some(Epoch(2)), None]);
}

async fn a_counter_below_a_committed_number_begins_an_epoch_above_it(world: World) {
    let seen = |seen| RestoreEvidence { seen, ..RestoreEvidence::default() };
    let latest = world.store.get_position().await.unwrap().latest;
    assert_eq!(world.store.record_origin(write_context(), seen(latest)).await.unwrap(), None);
    // The epoch in which the lost number was committed is lost too.
    let lost = Sequence(Epoch(2).start().0 + 7);
    let position = world.store.record_origin(write_context(), seen(lost)).await.unwrap().unwrap();
    assert_eq!(position.epoch, Epoch(3));
    assert!(position.latest > lost);
    assert_eq!(world.store.record_origin(write_context(), seen(lost)).await.unwrap(), None);
}

async fn changes_since_a_position_are_complete_and_exact(world: World) {
    let [one, two] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(one, stack).await.unwrap();
    world.submit(stack).await;
    let latest = world.store.get_position().await.unwrap().latest;
    assert_eq!(world.store.list_changes_since(latest).await.unwrap().changes, []);
    let submitted = world.submit(stack).await;
    let since = world.store.list_changes_since(latest).await.unwrap();
    assert_eq!(since.changes, [StoreChange::TargetState(one, submitted.sequence_id)]);
    assert_eq!(world.store.list_changes_since(since.latest).await.unwrap().changes, []);
    world.rotate_agent_key(two, crate::support::key()).await.unwrap();
    assert_eq!(world.store.list_changes_since(since.latest).await.unwrap().changes, [StoreChange::Keys]);
}

async fn errors_name_the_missing_or_existing_record(world: World) {
    let [agent] = world.add_agents().await;
    let existing = world.add_agent("agent-0", &[]).await.unwrap_err();
    assert_eq!(existing.to_string(), "agent agent-0 of cluster cluster exists already");
    let missing_generator = GeneratorId::generate(&entropy());
    let error = world.add_agent("new", &[missing_generator]).await.unwrap_err();
    assert_eq!(
        error,
        StoreError::MissingReference { kind: RecordKind::Generator, name: missing_generator.to_string() }
    );
    assert_eq!(world.store.list_agents(ALL).await.unwrap().len(), 1, "the failed call has left nothing");
    let orphan = world.store.create_stack(write_context(), stack("web", missing_generator)).await.unwrap_err();
    assert!(matches!(orphan, StoreError::MissingReference { kind: RecordKind::Generator, .. }));
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    assert!(matches!(
        world.target(agent, stack).await,
        Err(StoreError::AlreadyExists { kind: RecordKind::Target, .. })
    ));
    let unregistered = world.add_agent("unregistered", &[]).await.unwrap();
    assert!(matches!(world.target(unregistered, stack).await, Err(StoreError::NotRegistered { .. })));
}
