//! How agents are doing: heartbeats, health, what is pending, what the departed owe.

use sindri_broker::{Page, Whose};
use sindri_model::wire::EventStatus::Success;
use sindri_model::wire::{
    AgentStatus, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusUpdate, UpdateAgentRequest,
};
use sindri_model::{AgentId, RevisionId};

use crate::support::{ALL, World, at, contracts, stamp};

contracts!(
    a_deleted_agent_stays_in_view_while_it_owes_something,
    pending_is_what_is_wanted_and_not_confirmed,
    the_newest_heartbeat_counts,
    health_is_the_last_word_of_each_agent,
    agents_are_listed_by_name_and_by_page,
    another_status_is_told_to_whoever_polls,
);

async fn another_status_is_told_to_whoever_polls(world: World) {
    let [agent, other] = world.with_agents().await;
    let change = async |changes| world.store.update_agent(stamp(), agent, changes).await.unwrap();
    let before = world.store.hand_out(agent).await.unwrap();
    assert_eq!(before.status, AgentStatus::Inactive);
    change(UpdateAgentRequest { name: Some("new".to_owned()), ..Default::default() }).await;
    change(UpdateAgentRequest { status: Some(AgentStatus::Inactive), ..Default::default() }).await;
    assert_eq!(world.store.version_of(agent).await.unwrap(), before.version, "it is the same");
    change(UpdateAgentRequest { status: Some(AgentStatus::Active), ..Default::default() }).await;
    let after = world.store.hand_out(agent).await.unwrap();
    assert_eq!((after.status, after.nudged), (AgentStatus::Active, before.nudged));
    assert!(after.version > before.version);
    assert_eq!(world.store.version_of(other).await.unwrap(), Default::default());
}

async fn a_deleted_agent_stays_in_view_while_it_owes_something(world: World) {
    let [debtor, clean] = world.with_agents().await;
    let (kept, removed) = (world.add_stack("kept").await, world.add_stack("removed").await);
    for stack in [kept, removed] {
        world.target(debtor, stack).await.unwrap();
        world.submit(stack).await;
    }
    world.poll(debtor).await;
    world.store.remove_target(stamp(), debtor, removed).await.unwrap();
    let removal = world.poll(debtor).await.into_iter().find(|(_, is_removal)| *is_removal).unwrap().0;
    world.report(debtor, removal, Success).await.unwrap();
    world.store.delete_agent(stamp(), debtor).await.unwrap();
    world.store.delete_agent(stamp(), clean).await.unwrap();
    let fleet = world.store.fleet(Whose::All, ALL).await.unwrap();
    assert_eq!(fleet.len(), 1, "{fleet:?}");
    assert_eq!((fleet[0].agent.id, fleet[0].pending), (debtor, 1));
    assert!(fleet[0].agent.deleted_at.is_some());
    assert_eq!(world.store.fleet_entry(debtor).await.unwrap().pending, 1);
    assert!(world.store.agent(debtor).await.is_err());
    assert!(world.store.hand_out(debtor).await.is_err());
}

async fn pending_is_what_is_wanted_and_not_confirmed(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    assert_eq!(pending(&world, agent).await, 0, "there is no revision yet");
    let revision = world.submit(stack).await;
    assert_eq!(pending(&world, agent).await, 1);
    world.poll(agent).await;
    world.report(agent, revision.id, Success).await.unwrap();
    assert_eq!(pending(&world, agent).await, 0);
    world.store.remove_target(stamp(), agent, stack).await.unwrap();
    assert_eq!(pending(&world, agent).await, 1);
    let removal = world.only_removal(agent).await;
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(pending(&world, agent).await, 0);
    assert_eq!(world.store.fleet_entry(agent).await.unwrap().last_event_at, Some(at(1)));
}

async fn pending(world: &World, agent: AgentId) -> i64 {
    world.store.fleet_entry(agent).await.unwrap().pending
}

async fn the_newest_heartbeat_counts(world: World) {
    let [agent] = world.with_agents().await;
    world.beat(agent, 20).await;
    world.beat(agent, 10).await;
    assert_eq!(world.store.agent(agent).await.unwrap().last_heartbeat, Some(at(20)));
}

async fn health_is_the_last_word_of_each_agent(world: World) {
    let [one, two] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
        world.poll(agent).await;
    }
    for (agent, status) in [(one, HealthStatus::Failing), (one, HealthStatus::Degraded), (two, HealthStatus::Healthy)] {
        world.store.record_health(stamp(), agent, update(revision.id, status)).await.unwrap();
    }
    let said = world.store.health_of_revision(revision.id).await.unwrap();
    assert_eq!(said.len(), 2);
    assert_eq!(HealthStatus::worst(said.iter().map(|health| health.status)), HealthStatus::Degraded);
    assert_eq!(world.store.health_of_stack(stack).await.unwrap(), said);
    let fleet = world.store.fleet(Whose::All, ALL).await.unwrap();
    assert_eq!(fleet.iter().map(|entry| (entry.degraded, entry.failing)).collect::<Vec<_>>(), [(1, 0), (0, 0)]);
    let stranger = world.add_agent("stranger", &[]).await.unwrap();
    let refused = world.store.record_health(stamp(), stranger, update(revision.id, HealthStatus::Healthy)).await;
    assert!(refused.is_err());
}

fn update(id: RevisionId, status: HealthStatus) -> HealthStatusUpdate {
    let said = DeploymentObjectHealthUpdate { id, status, summary: None, checked_at: at(5) };
    HealthStatusUpdate { deployment_objects: vec![said] }
}

async fn agents_are_listed_by_name_and_by_page(world: World) {
    let [zero, one, two] = world.with_agents().await;
    let changes =
        UpdateAgentRequest { name: Some("first".to_owned()), status: Some(AgentStatus::Active), ..Default::default() };
    world.store.update_agent(stamp(), two, changes.clone()).await.unwrap();
    let ids = |agents: Vec<sindri_model::wire::Agent>| agents.into_iter().map(|agent| agent.id).collect::<Vec<_>>();
    assert_eq!(ids(world.store.agents(ALL).await.unwrap()), [zero, one, two], "agent-0, agent-1, first");
    let page = Page { after: Some(zero.to_string()), limit: 1 };
    assert_eq!(ids(world.store.agents(page).await.unwrap()), [one]);
    assert!(world.store.update_agent(stamp(), one, changes).await.is_err(), "the name is taken");
}
