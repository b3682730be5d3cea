//! An agent that is deleted and made again: what the first left in its cluster is the business of the second.

use sindri_broker::{AuditFilter, Whose};
use sindri_model::wire::EventStatus::Success;
use sindri_model::{AgentId, RevisionId, StackId};

use crate::support::{ALL, World, contracts, stamp};

contracts!(
    what_was_to_be_removed_is_said_to_the_successor,
    a_stack_that_was_deleted_meanwhile_or_later_is_removed_by_the_successor,
    a_marker_that_is_submitted_reaches_the_successor,
    silence_removes_nothing_and_the_operator_decides,
    what_is_targeted_again_goes_on,
    what_was_confirmed_or_never_received_is_not_taken_over,
    another_name_takes_nothing_over,
    the_third_takes_over_from_the_second,
);

/// An agent that has received stacks of these names.
async fn received<const N: usize>(world: &World, names: [&str; N]) -> (AgentId, [StackId; N]) {
    let [agent] = world.with_agents().await;
    let mut stacks = Vec::new();
    for name in names {
        let stack = world.add_stack(name).await;
        world.target(agent, stack).await.unwrap();
        world.submit(stack).await;
        stacks.push(stack);
    }
    world.poll(agent).await;
    (agent, stacks.try_into().unwrap())
}

async fn replace(world: &World, agent: AgentId) -> AgentId {
    let name = world.store.agent(agent).await.unwrap().name;
    world.store.delete_agent(stamp(), agent).await.unwrap();
    world.add_agent(&name, &[world.generator]).await.unwrap()
}

async fn confirm(world: &World, agent: AgentId, removal: RevisionId) {
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(world.poll(agent).await, []);
}

async fn pending(world: &World, agent: AgentId) -> i64 {
    world.store.fleet_entry(agent).await.unwrap().pending
}

async fn what_was_to_be_removed_is_said_to_the_successor(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    world.store.remove_target(stamp(), first, stack).await.unwrap();
    let to_the_first = world.only_removal(first).await;
    let second = replace(&world, first).await;
    let removal = world.only_removal(second).await;
    assert!(removal != to_the_first, "that one was for the first alone");
    assert!(world.report(second, to_the_first, Success).await.is_err());
    let fleet = world.store.fleet(Whose::All, ALL).await.unwrap();
    assert_eq!(fleet.iter().map(|entry| (entry.agent.id, entry.pending)).collect::<Vec<_>>(), [(second, 1)]);
    confirm(&world, second, removal).await;
    assert_eq!(pending(&world, second).await, 0);
}

async fn a_stack_that_was_deleted_meanwhile_or_later_is_removed_by_the_successor(world: World) {
    let (first, [meanwhile, later]) = received(&world, ["meanwhile", "later"]).await;
    let name = world.store.agent(first).await.unwrap().name;
    world.store.delete_agent(stamp(), first).await.unwrap();
    world.store.delete_stack(stamp(), meanwhile).await.unwrap();
    let second = world.add_agent(&name, &[]).await.unwrap();
    let removal = world.only_removal(second).await;
    confirm(&world, second, removal).await;
    world.store.delete_stack(stamp(), later).await.unwrap();
    let removal = world.only_removal(second).await;
    confirm(&world, second, removal).await;
}

async fn a_marker_that_is_submitted_reaches_the_successor(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    let second = replace(&world, first).await;
    let before = world.store.version_of(second).await.unwrap();
    let marker = world.submit_marker(stack).await;
    assert!(world.store.version_of(second).await.unwrap() > before, "a poll that waits is told");
    assert_eq!(world.only_removal(second).await, marker.id);
    confirm(&world, second, marker.id).await;
}

async fn silence_removes_nothing_and_the_operator_decides(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    let second = replace(&world, first).await;
    assert_eq!(world.poll(second).await, [], "nobody asked for its removal");
    assert_eq!(pending(&world, second).await, 1, "and it is in view");
    world.submit(stack).await;
    assert_eq!(world.poll(second).await, [], "nor is it wanted there");
    world.store.remove_target(stamp(), second, stack).await.unwrap();
    let removal = world.only_removal(second).await;
    assert!(world.store.remove_target(stamp(), second, stack).await.is_err(), "it was said once");
    confirm(&world, second, removal).await;
    assert_eq!(pending(&world, second).await, 0);
}

async fn what_is_targeted_again_goes_on(world: World) {
    let (first, [kept, removed]) = received(&world, ["kept", "removed"]).await;
    world.store.remove_target(stamp(), first, removed).await.unwrap();
    let second = replace(&world, first).await;
    for stack in [kept, removed] {
        world.target(second, stack).await.unwrap();
    }
    let told = world.poll(second).await;
    assert!(told.len() == 2 && told.iter().all(|(_, is_removal)| !is_removal), "{told:?}");
    world.store.remove_target(stamp(), second, kept).await.unwrap();
    assert!(world.poll(second).await.iter().any(|(_, is_removal)| *is_removal));
}

async fn what_was_confirmed_or_never_received_is_not_taken_over(world: World) {
    let (first, [confirmed]) = received(&world, ["confirmed"]).await;
    world.store.remove_target(stamp(), first, confirmed).await.unwrap();
    let removal = world.only_removal(first).await;
    confirm(&world, first, removal).await;
    let fresh = world.add_stack("fresh").await;
    world.target(first, fresh).await.unwrap();
    world.submit(fresh).await;
    let second = replace(&world, first).await;
    for stack in [confirmed, fresh] {
        world.store.delete_stack(stamp(), stack).await.unwrap();
    }
    assert_eq!(world.poll(second).await, []);
    assert_eq!(pending(&world, second).await, 0);
}

async fn another_name_takes_nothing_over(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    world.store.delete_agent(stamp(), first).await.unwrap();
    let stranger = world.add_agent("stranger", &[world.generator]).await.unwrap();
    world.store.delete_stack(stamp(), stack).await.unwrap();
    assert_eq!(world.poll(stranger).await, []);
    assert_eq!(pending(&world, first).await, 1, "still owed by the one that is gone");
}

async fn the_third_takes_over_from_the_second(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    let second = replace(&world, first).await;
    let third = replace(&world, second).await;
    world.store.delete_stack(stamp(), stack).await.unwrap();
    let removal = world.only_removal(third).await;
    confirm(&world, third, removal).await;
    let made = AuditFilter { action: Some("agent.created".to_owned()), limit: 100, ..AuditFilter::default() };
    let logged = format!("{:?}", world.store.audit_logs(made).await.unwrap());
    assert!(logged.contains("took_over") && logged.contains(&first.to_string()), "{logged}");
}
