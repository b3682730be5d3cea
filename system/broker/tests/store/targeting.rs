//! Assignment of stacks to agents by targets, labels and annotations, and its end.

use sindri_broker::{AuditFilter, StoreError, TargetState, WriteContext};
use sindri_model::wire::EventStatus::{Failure, Success};
use sindri_model::wire::{AgentAnnotation, StackAnnotation, SubmittingRequest, UpdateStackRequest};
use sindri_model::{LinkId, StackId};

use crate::support::{ALL, World, contracts, entropy, revision, write_context};

contracts!(
    a_shared_label_assigns_a_stack_and_its_removal_unassigns_it,
    a_shared_annotation_assigns_a_stack_and_its_removal_unassigns_it,
    an_annotation_that_is_set_again_or_replaced_keeps_what_still_matches,
    annotations_with_the_longest_values_match,
    a_value_of_an_annotation_that_is_rejected_changes_nothing,
    labels_need_a_registration_and_targets_survive_its_end,
    an_agent_that_never_received_a_stack_gets_no_removal,
    a_stack_assigned_twice_is_removed_after_both_assignments_end,
    a_deletion_marker_reaches_every_agent_that_ever_received_the_stack,
    a_stack_that_is_targeted_again_cancels_its_removal,
    an_outcome_of_another_agent_is_rejected,
    only_a_revision_with_a_success_is_applied,
    deleting_a_generator_removes_its_stacks_everywhere,
    revisions_and_removals_keep_the_request_that_submitted_them,
    the_target_state_names_its_stacks_also_after_a_rename,
);

async fn a_shared_label_assigns_a_stack_and_its_removal_unassigns_it(world: World) {
    let [agent, other] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    world.label_stack(stack, "edge").await;
    assert_eq!(world.poll(agent).await, []);
    world.label_agent(agent, "edge").await;
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    assert_eq!(world.poll(other).await, []);
    world.store.remove_agent_label(write_context(), agent, "edge".to_owned()).await.unwrap();
    let removal = world.only_removal(agent).await;
    world.report(agent, removal, Failure).await.unwrap();
    assert_eq!(world.only_removal(agent).await, removal, "a failure confirms nothing");
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(world.poll(agent).await, []);
    world.label_agent(agent, "edge").await;
    world.poll(agent).await;
    world.store.remove_stack_label(write_context(), stack, "edge".to_owned()).await.unwrap();
    world.only_removal(agent).await;
}

async fn a_shared_annotation_assigns_a_stack_and_its_removal_unassigns_it(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    world.annotate_stack(stack, "zone", "north").await;
    world.annotate_agent(agent, "zone", "south").await;
    assert_eq!(world.poll(agent).await, [], "the value is compared too");
    world.store.remove_agent_annotation(write_context(), agent, "zone".to_owned()).await.unwrap();
    world.annotate_agent(agent, "zone", "north").await;
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    world.store.remove_stack_annotation(write_context(), stack, "zone".to_owned()).await.unwrap();
    world.only_removal(agent).await;
}

async fn annotations_with_the_longest_values_match(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let submitted = world.submit(stack).await;
    // Other characters each time, so that a database cannot compress the value.
    let characters = (0..4096_u32).filter_map(|number| char::from_u32(0x4e00 + number * 7919 % 20_000));
    let (key, value) = ("k".repeat(253), characters.collect::<String>());
    world.annotate_stack(stack, &key, &value).await;
    world.annotate_agent(agent, &key, &value[..value.len() - 3]).await;
    assert_eq!(world.poll(agent).await, []);
    let (id, agent_id) = (LinkId::generate(&entropy()), agent);
    world.store.set_agent_annotation(write_context(), AgentAnnotation { id, agent_id, key, value }).await.unwrap();
    assert_eq!(world.poll(agent).await, [(submitted.id, false)]);
}

async fn an_annotation_that_is_set_again_or_replaced_keeps_what_still_matches(world: World) {
    let [agent] = world.add_agents().await;
    let (north, south, both) =
        (world.add_stack("north").await, world.add_stack("south").await, world.add_stack("both").await);
    for (stack, zone) in [(north, "north"), (south, "south"), (both, "north")] {
        world.submit(stack).await;
        world.annotate_stack(stack, "zone", zone).await;
    }
    world.label_agent(agent, "x").await;
    world.label_stack(both, "x").await;
    let set = async |value: &str| {
        let (id, key) = (LinkId::generate(&entropy()), "zone".to_owned());
        let annotation = AgentAnnotation { id, agent_id: agent, key, value: value.to_owned() };
        world.store.set_agent_annotation(write_context(), annotation).await.unwrap()
    };
    let first = set("north").await;
    let assigned = world.poll(agent).await;
    assert_eq!(assigned.len(), 2, "{assigned:?}");
    let version = async || world.store.get_target_state(agent).await.unwrap().version;
    let audited = async || {
        let filter = AuditFilter { limit: 1, ..AuditFilter::default() };
        world.store.list_audit_log(filter).await.unwrap().1
    };
    let before = (version().await, audited().await);
    assert_eq!(set("north").await, first);
    assert_eq!((version().await, audited().await), before, "the same value changes nothing");
    let replaced = set("south").await;
    assert_eq!((replaced.id, replaced.value.as_str()), (first.id, "south"));
    let polled = world.poll(agent).await;
    let removals = polled.iter().filter(|(_, is_removal)| *is_removal).count();
    assert_eq!((polled.len(), removals), (3, 1), "north is removed, and the stack with the label stays: {polled:?}");
    assert!(world.store.is_assigned(agent, south).await.unwrap());
    world.store.set_stack_annotation(write_context(), zone_of(south, "south")).await.unwrap();
    world.store.set_stack_annotation(write_context(), zone_of(north, "south")).await.unwrap();
    assert!(world.poll(agent).await.iter().all(|(_, is_removal)| !is_removal), "a replaced value assigns");
    let annotations = world.store.list_stack_annotations(north, ALL).await.unwrap();
    assert_eq!(annotations.iter().map(|annotation| annotation.value.as_str()).collect::<Vec<_>>(), ["south"]);
}

fn zone_of(stack_id: StackId, value: &str) -> StackAnnotation {
    let id = LinkId::generate(&entropy());
    StackAnnotation { id, stack_id, key: "zone".to_owned(), value: value.to_owned() }
}

async fn a_value_of_an_annotation_that_is_rejected_changes_nothing(world: World) {
    let [_] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.annotate_stack(stack, "sindri.dev/suspend", "true").await;
    for (key, value) in [("sindri.dev/suspend", "perhaps,"), ("sindri.dev/depends-on", "missing")] {
        let annotation = StackAnnotation { key: key.to_owned(), ..zone_of(stack, value) };
        let rejected = world.store.set_stack_annotation(write_context(), annotation).await;
        assert!(
            matches!(rejected, Err(StoreError::InvalidPolicy(_) | StoreError::MissingReference { .. })),
            "{rejected:?}"
        );
    }
    let kept = world.store.list_stack_annotations(stack, ALL).await.unwrap();
    let kept: Vec<_> = kept.iter().map(|annotation| (annotation.key.as_str(), annotation.value.as_str())).collect();
    assert_eq!(kept, [("sindri.dev/suspend", "true")], "the stack stays suspended");
}

async fn labels_need_a_registration_and_targets_survive_its_end(world: World) {
    let [agent] = world.add_agents().await;
    let (labelled, targeted) = (world.add_stack("labelled").await, world.add_stack("targeted").await);
    world.label_agent(agent, "a").await;
    world.label_stack(labelled, "a").await;
    world.target(agent, targeted).await.unwrap();
    world.submit(labelled).await;
    let kept = world.submit(targeted).await;
    assert_eq!(world.poll(agent).await.len(), 2);
    world.store.unregister_agent(write_context(), world.generator, agent).await.unwrap();
    let polled = world.poll(agent).await;
    assert_eq!(polled[0], (kept.id, false));
    assert!(polled[1].1 && polled.len() == 2, "{polled:?}");
    world.store.register_agent(write_context(), world.generator, agent).await.unwrap();
    assert!(world.poll(agent).await.iter().all(|(_, is_removal)| !is_removal));
}

async fn an_agent_that_never_received_a_stack_gets_no_removal(world: World) {
    let [agent, other] = world.add_agents().await;
    let (taken, deleted) = (world.add_stack("taken").await, world.add_stack("deleted").await);
    for stack in [taken, deleted] {
        world.target(agent, stack).await.unwrap();
        world.submit(stack).await;
    }
    world.store.get_target_state(agent).await.unwrap();
    world.store.remove_target(write_context(), agent, taken).await.unwrap();
    world.store.delete_stack(write_context(), deleted).await.unwrap();
    assert_eq!(world.poll(agent).await, []);
    assert_eq!(world.poll(other).await, []);
    assert!(!world.store.is_assigned(agent, taken).await.unwrap());
}

async fn a_stack_assigned_twice_is_removed_after_both_assignments_end(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    world.target(agent, stack).await.unwrap();
    world.label_agent(agent, "a").await;
    world.label_stack(stack, "a").await;
    world.poll(agent).await;
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    world.store.remove_agent_label(write_context(), agent, "a".to_owned()).await.unwrap();
    world.only_removal(agent).await;
}

async fn a_deletion_marker_reaches_every_agent_that_ever_received_the_stack(world: World) {
    let [one, two, three] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.submit(stack).await;
    for agent in [one, two, three] {
        world.target(agent, stack).await.unwrap();
    }
    world.poll(one).await;
    world.poll(two).await;
    // The second agent has removed the stack, and has confirmed that.
    world.store.remove_target(write_context(), two, stack).await.unwrap();
    let removal = world.only_removal(two).await;
    world.report(two, removal, Success).await.unwrap();
    world.store.delete_stack(write_context(), stack).await.unwrap();
    let marker = world.only_removal(one).await;
    assert_eq!(world.only_removal(two).await, marker, "it has received the stack once");
    assert_eq!(world.poll(three).await, [], "it has never received the stack");
    assert!(world.store.get_stack(stack).await.is_err());
    world.report(one, marker, Success).await.unwrap();
    assert_eq!(world.poll(one).await, []);
    assert_eq!(world.only_removal(two).await, marker, "each agent confirms for itself");
}

async fn a_stack_that_is_targeted_again_cancels_its_removal(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await;
    world.poll(agent).await;
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    let old = world.only_removal(agent).await;
    world.target(agent, stack).await.unwrap();
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    world.report(agent, old, Success).await.unwrap();
    assert_eq!(world.poll(agent).await, [(revision.id, false)], "a late confirmation changes nothing");
    let marker = world.submit_marker(stack).await;
    assert_eq!(world.only_removal(agent).await, marker.id);
    let fresh = world.submit(stack).await;
    assert_eq!(world.poll(agent).await, [(fresh.id, false)]);
}

async fn an_outcome_of_another_agent_is_rejected(world: World) {
    let [one, two, unregistered] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
        world.poll(agent).await;
    }
    assert!(world.report(unregistered, revision.id, Success).await.is_err(), "the stack was never assigned to it");
    world.store.remove_target(write_context(), one, stack).await.unwrap();
    let removal = world.only_removal(one).await;
    assert!(world.report(two, removal, Success).await.is_err(), "the removal was for the other agent only");
    assert_eq!(world.only_removal(one).await, removal);
    assert_eq!(world.store.list_events(sindri_broker::ListScope::All, ALL).await.unwrap(), []);
}

async fn only_a_revision_with_a_success_is_applied(world: World) {
    let [agent] = world.add_agents().await;
    let (good, bad) = (world.add_stack("good").await, world.add_stack("bad").await);
    for stack in [good, bad] {
        world.target(agent, stack).await.unwrap();
    }
    let (first, second) = (world.submit(good).await, world.submit(bad).await);
    world.poll(agent).await;
    world.report(agent, first.id, Success).await.unwrap();
    world.report(agent, second.id, Failure).await.unwrap();
    let done: Vec<bool> = world
        .store
        .deliver_target_state(agent)
        .await
        .unwrap()
        .revisions
        .iter()
        .map(|target| target.is_applied)
        .collect();
    assert_eq!(done, [true, false]);
    world.submit(good).await;
    assert!(world.store.deliver_target_state(agent).await.unwrap().revisions.iter().all(|target| !target.is_applied));
}

async fn deleting_a_generator_removes_its_stacks_everywhere(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    world.submit(stack).await;
    world.poll(agent).await;
    world.store.delete_generator(write_context(), world.generator).await.unwrap();
    world.only_removal(agent).await;
    assert!(world.store.get_generator(world.generator).await.is_err());
    assert_eq!(world.store.list_registrations_of_agent(agent, ALL).await.unwrap(), []);
}

async fn revisions_and_removals_keep_the_request_that_submitted_them(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let request = |id: &str, traceparent: Option<&str>| {
        Some(SubmittingRequest { id: id.to_owned(), traceparent: traceparent.map(str::to_owned) })
    };
    let delivered = || async {
        let state = world.store.deliver_target_state(agent).await.unwrap();
        state.revisions.into_iter().map(|target| target.request).collect::<Vec<_>>()
    };
    world.submit(stack).await;
    assert_eq!(delivered().await, [None], "no request has submitted it");
    let first = request("first", Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    let context = WriteContext { request: first.clone(), ..write_context() };
    world.store.append_revision(context, revision(stack, "a: 2")).await.unwrap();
    assert_eq!(delivered().await, [first]);
    let second = request("second", None);
    let context = WriteContext { request: second.clone(), ..write_context() };
    world.store.delete_stack(context, stack).await.unwrap();
    assert_eq!(delivered().await, [second], "the deletion has a request of its own");
}

async fn the_target_state_names_its_stacks_also_after_a_rename(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    world.submit(stack).await;
    let state = || async { world.store.deliver_target_state(agent).await.unwrap() };
    let name = |state: &TargetState| state.revisions[0].revision.stack_name.clone();
    let before = state().await;
    assert_eq!(name(&before).as_deref(), Some("web"));
    let changes = UpdateStackRequest { name: Some("shop".to_owned()), ..UpdateStackRequest::default() };
    world.store.update_stack(write_context(), stack, changes).await.unwrap();
    let renamed = state().await;
    assert_eq!(name(&renamed).as_deref(), Some("shop"));
    assert!(renamed.version > before.version, "agents fetch the new name");
    world.store.delete_stack(write_context(), stack).await.unwrap();
    assert_eq!(name(&state().await).as_deref(), Some("shop"), "a removal has it too");
}
