//! Which stacks go to which agents, and how they are taken away again.

use sindri_model::wire::EventStatus::{Failure, Success};

use crate::support::{ALL, World, contracts, stamp};

contracts!(
    a_shared_label_gives_a_stack_and_its_loss_takes_it_away,
    a_shared_annotation_gives_a_stack_and_its_loss_takes_it_away,
    labels_need_a_registration_and_targets_outlive_it,
    an_agent_that_never_received_a_stack_is_not_bothered,
    two_ways_to_a_stack_must_both_go,
    a_marker_waits_for_everyone_who_ever_received_the_stack,
    a_stack_that_comes_back_is_wanted_again,
    an_outcome_of_someone_else_says_nothing,
    incremental_leaves_out_what_is_done_and_never_what_failed,
    deleting_a_generator_removes_its_stacks_everywhere,
);

async fn a_shared_label_gives_a_stack_and_its_loss_takes_it_away(world: World) {
    let [agent, other] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    world.label_stack(stack, "edge").await;
    assert_eq!(world.poll(agent).await, []);
    world.label_agent(agent, "edge").await;
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    assert_eq!(world.poll(other).await, []);
    world.store.remove_agent_label(stamp(), agent, "edge".to_owned()).await.unwrap();
    let removal = world.only_removal(agent).await;
    world.report(agent, removal, Failure).await.unwrap();
    assert_eq!(world.only_removal(agent).await, removal, "a failure confirms nothing");
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(world.poll(agent).await, []);
    world.label_agent(agent, "edge").await;
    world.poll(agent).await;
    world.store.remove_stack_label(stamp(), stack, "edge".to_owned()).await.unwrap();
    world.only_removal(agent).await;
}

async fn a_shared_annotation_gives_a_stack_and_its_loss_takes_it_away(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    world.annotate_stack(stack, "zone", "north").await;
    world.annotate_agent(agent, "zone", "south").await;
    assert_eq!(world.poll(agent).await, [], "the value counts too");
    world.store.remove_agent_annotation(stamp(), agent, "zone".to_owned()).await.unwrap();
    world.annotate_agent(agent, "zone", "north").await;
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    world.store.remove_stack_annotation(stamp(), stack, "zone".to_owned()).await.unwrap();
    world.only_removal(agent).await;
}

async fn labels_need_a_registration_and_targets_outlive_it(world: World) {
    let [agent] = world.with_agents().await;
    let (labelled, targeted) = (world.add_stack("labelled").await, world.add_stack("targeted").await);
    world.label_agent(agent, "a").await;
    world.label_stack(labelled, "a").await;
    world.target(agent, targeted).await.unwrap();
    world.submit(labelled).await;
    let kept = world.submit(targeted).await;
    assert_eq!(world.poll(agent).await.len(), 2);
    world.store.unregister(stamp(), world.generator, agent).await.unwrap();
    let told = world.poll(agent).await;
    assert_eq!(told[0], (kept.id, false));
    assert!(told[1].1 && told.len() == 2, "{told:?}");
    world.store.register(stamp(), world.generator, agent).await.unwrap();
    assert!(world.poll(agent).await.iter().all(|(_, is_removal)| !is_removal));
}

async fn an_agent_that_never_received_a_stack_is_not_bothered(world: World) {
    let [agent, other] = world.with_agents().await;
    let (taken, deleted) = (world.add_stack("taken").await, world.add_stack("deleted").await);
    for stack in [taken, deleted] {
        world.target(agent, stack).await.unwrap();
        world.submit(stack).await;
    }
    world.store.desired_set(agent).await.unwrap();
    world.store.remove_target(stamp(), agent, taken).await.unwrap();
    world.store.delete_stack(stamp(), deleted).await.unwrap();
    assert_eq!(world.poll(agent).await, []);
    assert_eq!(world.poll(other).await, []);
    assert!(!world.store.concerns(agent, taken).await.unwrap());
}

async fn two_ways_to_a_stack_must_both_go(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    world.target(agent, stack).await.unwrap();
    world.label_agent(agent, "a").await;
    world.label_stack(stack, "a").await;
    world.poll(agent).await;
    world.store.remove_target(stamp(), agent, stack).await.unwrap();
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    world.store.remove_agent_label(stamp(), agent, "a".to_owned()).await.unwrap();
    world.only_removal(agent).await;
}

async fn a_marker_waits_for_everyone_who_ever_received_the_stack(world: World) {
    let [one, two, three] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.submit(stack).await;
    for agent in [one, two, three] {
        world.target(agent, stack).await.unwrap();
    }
    world.poll(one).await;
    world.poll(two).await;
    // It was taken away from the second, which has confirmed that.
    world.store.remove_target(stamp(), two, stack).await.unwrap();
    let removal = world.only_removal(two).await;
    world.report(two, removal, Success).await.unwrap();
    world.store.delete_stack(stamp(), stack).await.unwrap();
    let marker = world.only_removal(one).await;
    assert_eq!(world.only_removal(two).await, marker, "it has received the stack, ever");
    assert_eq!(world.poll(three).await, [], "it never has");
    assert!(world.store.stack(stack).await.is_err());
    world.report(one, marker, Success).await.unwrap();
    assert_eq!(world.poll(one).await, []);
    assert_eq!(world.only_removal(two).await, marker, "each confirms for itself");
}

async fn a_stack_that_comes_back_is_wanted_again(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await;
    world.poll(agent).await;
    world.store.remove_target(stamp(), agent, stack).await.unwrap();
    let old = world.only_removal(agent).await;
    world.target(agent, stack).await.unwrap();
    assert_eq!(world.poll(agent).await, [(revision.id, false)]);
    world.report(agent, old, Success).await.unwrap();
    assert_eq!(world.poll(agent).await, [(revision.id, false)], "a late word changes nothing");
    let marker = world.submit_marker(stack).await;
    assert_eq!(world.only_removal(agent).await, marker.id);
    let fresh = world.submit(stack).await;
    assert_eq!(world.poll(agent).await, [(fresh.id, false)]);
}

async fn an_outcome_of_someone_else_says_nothing(world: World) {
    let [one, two, stranger] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
        world.poll(agent).await;
    }
    assert!(world.report(stranger, revision.id, Success).await.is_err(), "the stack never concerned it");
    world.store.remove_target(stamp(), one, stack).await.unwrap();
    let removal = world.only_removal(one).await;
    assert!(world.report(two, removal, Success).await.is_err(), "it was for the other one only");
    assert_eq!(world.only_removal(one).await, removal);
    assert_eq!(world.store.events(sindri_broker::Whose::All, ALL).await.unwrap(), []);
}

async fn incremental_leaves_out_what_is_done_and_never_what_failed(world: World) {
    let [agent] = world.with_agents().await;
    let (good, bad) = (world.add_stack("good").await, world.add_stack("bad").await);
    for stack in [good, bad] {
        world.target(agent, stack).await.unwrap();
    }
    let (first, second) = (world.submit(good).await, world.submit(bad).await);
    world.poll(agent).await;
    world.report(agent, first.id, Success).await.unwrap();
    world.report(agent, second.id, Failure).await.unwrap();
    let done: Vec<bool> =
        world.store.hand_out(agent).await.unwrap().objects.iter().map(|desired| desired.is_done).collect();
    assert_eq!(done, [true, false]);
    world.submit(good).await;
    assert!(world.store.hand_out(agent).await.unwrap().objects.iter().all(|desired| !desired.is_done));
}

async fn deleting_a_generator_removes_its_stacks_everywhere(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    world.submit(stack).await;
    world.poll(agent).await;
    world.store.delete_generator(stamp(), world.generator).await.unwrap();
    world.only_removal(agent).await;
    assert!(world.store.generator(world.generator).await.is_err());
    assert_eq!(world.store.registrations_of_agent(agent, ALL).await.unwrap(), []);
}
