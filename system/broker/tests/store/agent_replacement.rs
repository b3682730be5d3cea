//! Replacement of a deleted agent: the next agent with its name takes over the stacks that it left in the cluster.

use sindri_broker::{AuditFilter, ListScope};
use sindri_model::wire::EventStatus::Success;
use sindri_model::{AgentId, RevisionId, StackId};

use crate::support::{ALL, World, contracts, run_sql, write_context};

contracts!(
    an_unconfirmed_removal_passes_to_the_successor,
    a_stack_deleted_before_or_after_the_replacement_is_removed_by_the_successor,
    a_submitted_deletion_marker_reaches_the_successor,
    a_left_over_stack_stays_until_its_target_is_removed,
    a_stack_that_is_targeted_again_continues,
    a_confirmed_or_never_received_stack_is_not_taken_over,
    an_agent_with_another_name_takes_nothing_over,
    a_second_replacement_takes_over_from_the_first,
);

/// An agent that has received stacks of these names.
async fn received<const N: usize>(world: &World, names: [&str; N]) -> (AgentId, [StackId; N]) {
    let [agent] = world.add_agents().await;
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
    let name = world.store.get_agent(agent).await.unwrap().name;
    world.store.delete_agent(write_context(), agent).await.unwrap();
    world.add_agent(&name, &[world.generator]).await.unwrap()
}

async fn confirm(world: &World, agent: AgentId, removal: RevisionId) {
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(world.poll(agent).await, []);
}

async fn pending(world: &World, agent: AgentId) -> i64 {
    world.store.get_fleet_entry(agent).await.unwrap().pending
}

async fn an_unconfirmed_removal_passes_to_the_successor(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    world.store.remove_target(write_context(), first, stack).await.unwrap();
    let to_the_first = world.only_removal(first).await;
    let second = replace(&world, first).await;
    let removal = world.only_removal(second).await;
    assert!(removal != to_the_first, "the first removal was for the first agent alone");
    assert!(world.report(second, to_the_first, Success).await.is_err());
    let fleet = world.store.list_fleet(ListScope::All, ALL).await.unwrap();
    assert_eq!(fleet.iter().map(|entry| (entry.agent.id, entry.pending)).collect::<Vec<_>>(), [(second, 1)]);
    confirm(&world, second, removal).await;
    assert_eq!(pending(&world, second).await, 0);
}

async fn a_stack_deleted_before_or_after_the_replacement_is_removed_by_the_successor(world: World) {
    let (first, [meanwhile, later]) = received(&world, ["meanwhile", "later"]).await;
    let name = world.store.get_agent(first).await.unwrap().name;
    world.store.delete_agent(write_context(), first).await.unwrap();
    world.store.delete_stack(write_context(), meanwhile).await.unwrap();
    let second = world.add_agent(&name, &[]).await.unwrap();
    let removal = world.only_removal(second).await;
    confirm(&world, second, removal).await;
    world.store.delete_stack(write_context(), later).await.unwrap();
    let removal = world.only_removal(second).await;
    confirm(&world, second, removal).await;
}

async fn a_submitted_deletion_marker_reaches_the_successor(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    let second = replace(&world, first).await;
    let before = world.store.get_target_version(second).await.unwrap();
    let marker = world.submit_marker(stack).await;
    assert!(world.store.get_target_version(second).await.unwrap() > before, "a waiting poll ends");
    assert_eq!(world.only_removal(second).await, marker.id);
    confirm(&world, second, marker.id).await;
}

async fn a_left_over_stack_stays_until_its_target_is_removed(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    let second = replace(&world, first).await;
    assert_eq!(world.poll(second).await, [], "its removal was not requested");
    assert_eq!(pending(&world, second).await, 1, "and it is counted");
    world.submit(stack).await;
    assert_eq!(world.poll(second).await, [], "nor should the agent have it");
    world.store.remove_target(write_context(), second, stack).await.unwrap();
    let removal = world.only_removal(second).await;
    assert!(world.store.remove_target(write_context(), second, stack).await.is_err(), "there is one removal");
    confirm(&world, second, removal).await;
    assert_eq!(pending(&world, second).await, 0);
}

async fn a_stack_that_is_targeted_again_continues(world: World) {
    let (first, [kept, removed]) = received(&world, ["kept", "removed"]).await;
    world.store.remove_target(write_context(), first, removed).await.unwrap();
    let second = replace(&world, first).await;
    for stack in [kept, removed] {
        world.target(second, stack).await.unwrap();
    }
    let polled = world.poll(second).await;
    assert!(polled.len() == 2 && polled.iter().all(|(_, is_removal)| !is_removal), "{polled:?}");
    world.store.remove_target(write_context(), second, kept).await.unwrap();
    assert!(world.poll(second).await.iter().any(|(_, is_removal)| *is_removal));
}

async fn a_confirmed_or_never_received_stack_is_not_taken_over(world: World) {
    let (first, [confirmed]) = received(&world, ["confirmed"]).await;
    world.store.remove_target(write_context(), first, confirmed).await.unwrap();
    let removal = world.only_removal(first).await;
    confirm(&world, first, removal).await;
    let fresh = world.add_stack("fresh").await;
    world.target(first, fresh).await.unwrap();
    world.submit(fresh).await;
    let second = replace(&world, first).await;
    for stack in [confirmed, fresh] {
        world.store.delete_stack(write_context(), stack).await.unwrap();
    }
    assert_eq!(world.poll(second).await, []);
    assert_eq!(pending(&world, second).await, 0);
}

async fn an_agent_with_another_name_takes_nothing_over(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    world.store.delete_agent(write_context(), first).await.unwrap();
    let unregistered = world.add_agent("other-name", &[world.generator]).await.unwrap();
    world.store.delete_stack(write_context(), stack).await.unwrap();
    assert_eq!(world.poll(unregistered).await, []);
    assert_eq!(pending(&world, first).await, 1, "still unconfirmed by the deleted agent");
}

async fn a_second_replacement_takes_over_from_the_first(world: World) {
    let (first, [stack]) = received(&world, ["web"]).await;
    let second = replace(&world, first).await;
    let third = replace(&world, second).await;
    world.store.delete_stack(write_context(), stack).await.unwrap();
    let removal = world.only_removal(third).await;
    confirm(&world, third, removal).await;
    let filter = AuditFilter { action: Some("agent.created".to_owned()), limit: 100, ..AuditFilter::default() };
    let log = format!("{:?}", world.store.list_audit_log(filter).await.unwrap());
    assert!(log.contains("took_over") && log.contains(&first.to_string()), "{log}");
}

#[tokio::test]
async fn a_report_that_arrived_during_the_deletion_of_an_agent_does_not_keep_its_name() {
    let Some(world) = World::postgres().await else { return };
    let (first, [stack]) = received(&world, ["web"]).await;
    let name = world.store.get_agent(first).await.unwrap().name;
    world.store.delete_agent(write_context(), first).await.unwrap();
    let late = format!(
        "INSERT INTO stack_status (agent_id, stack_id, revision_id, sequence, conditions)
         SELECT '{first}', '{stack}', id, sequence, '[]' FROM revisions LIMIT 1"
    );
    run_sql(world.url.as_ref().unwrap(), &late).await;
    let second = world.add_agent(&name, &[]).await.unwrap();
    world.store.delete_stack(write_context(), stack).await.unwrap();
    world.only_removal(second).await;
}
