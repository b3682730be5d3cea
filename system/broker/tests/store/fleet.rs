//! The fleet overview: heartbeats, health, pending revisions, and removals of deleted agents.

use sindri_broker::{ListScope, Page};
use sindri_model::wire::EventStatus::Success;
use sindri_model::wire::{
    AgentStatus, DeploymentObjectHealthUpdate, HealthStatus, HealthStatusUpdate, StackDeploymentHealth,
    UpdateAgentRequest,
};
use sindri_model::{AgentId, HealthId, RevisionId};

use crate::support::{ALL, World, at, contracts, write_context};

contracts!(
    a_deleted_agent_is_listed_while_a_removal_is_unconfirmed,
    pending_counts_unconfirmed_revisions_and_removals,
    an_older_heartbeat_does_not_replace_a_newer_one,
    health_is_the_last_report_of_each_agent,
    agents_are_listed_by_name_and_by_page,
    a_change_of_the_status_changes_the_target_version,
);

async fn a_change_of_the_status_changes_the_target_version(world: World) {
    let [agent, other] = world.add_agents().await;
    let change = async |changes| world.store.update_agent(write_context(), agent, changes).await.unwrap();
    let before = world.store.deliver_target_state(agent).await.unwrap();
    assert_eq!(before.status, AgentStatus::Inactive);
    change(UpdateAgentRequest { name: Some("new".to_owned()), ..Default::default() }).await;
    change(UpdateAgentRequest { status: Some(AgentStatus::Inactive), ..Default::default() }).await;
    assert_eq!(world.store.get_target_version(agent).await.unwrap(), before.version, "the status is the same");
    change(UpdateAgentRequest { status: Some(AgentStatus::Active), ..Default::default() }).await;
    let after = world.store.deliver_target_state(agent).await.unwrap();
    assert_eq!((after.status, after.recheck_version), (AgentStatus::Active, before.recheck_version));
    assert!(after.version > before.version);
    assert_eq!(world.store.get_target_version(other).await.unwrap(), Default::default());
}

async fn a_deleted_agent_is_listed_while_a_removal_is_unconfirmed(world: World) {
    let [owing, clean] = world.add_agents().await;
    let (kept, removed) = (world.add_stack("kept").await, world.add_stack("removed").await);
    for stack in [kept, removed] {
        world.target(owing, stack).await.unwrap();
        world.submit(stack).await;
    }
    world.poll(owing).await;
    world.store.remove_target(write_context(), owing, removed).await.unwrap();
    let removal = world.poll(owing).await.into_iter().find(|(_, is_removal)| *is_removal).unwrap().0;
    world.report(owing, removal, Success).await.unwrap();
    world.store.delete_agent(write_context(), owing).await.unwrap();
    world.store.delete_agent(write_context(), clean).await.unwrap();
    let fleet = world.store.list_fleet(ListScope::All, ALL).await.unwrap();
    assert_eq!(fleet.len(), 1, "{fleet:?}");
    assert_eq!((fleet[0].agent.id, fleet[0].pending), (owing, 1));
    assert!(fleet[0].agent.deleted_at.is_some());
    assert_eq!(world.store.get_fleet_entry(owing).await.unwrap().pending, 1);
    assert!(world.store.get_agent(owing).await.is_err());
    assert!(world.store.deliver_target_state(owing).await.is_err());
}

async fn pending_counts_unconfirmed_revisions_and_removals(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    assert_eq!(pending(&world, agent).await, 0, "there is no revision yet");
    let revision = world.submit(stack).await;
    assert_eq!(pending(&world, agent).await, 1);
    world.poll(agent).await;
    world.report(agent, revision.id, Success).await.unwrap();
    assert_eq!(pending(&world, agent).await, 0);
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    assert_eq!(pending(&world, agent).await, 1);
    let removal = world.only_removal(agent).await;
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(pending(&world, agent).await, 0);
    assert_eq!(world.store.get_fleet_entry(agent).await.unwrap().last_event_at, Some(at(1)));
}

async fn pending(world: &World, agent: AgentId) -> i64 {
    world.store.get_fleet_entry(agent).await.unwrap().pending
}

async fn an_older_heartbeat_does_not_replace_a_newer_one(world: World) {
    let [agent] = world.add_agents().await;
    world.send_heartbeat(agent, 20).await;
    world.send_heartbeat(agent, 10).await;
    assert_eq!(world.store.get_agent(agent).await.unwrap().last_heartbeat, Some(at(20)));
}

async fn health_is_the_last_report_of_each_agent(world: World) {
    let [one, two] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
        world.poll(agent).await;
    }
    for (agent, status) in [(one, HealthStatus::Failing), (one, HealthStatus::Degraded), (two, HealthStatus::Healthy)] {
        world.store.record_health(write_context(), agent, update(revision.id, status)).await.unwrap();
    }
    let reported = world.store.get_health_of_revision(revision.id, ALL).await.unwrap();
    assert_eq!((reported.health_records.len(), reported.overall_status), (2, HealthStatus::Degraded));
    let one_by_one = async |after: Option<HealthId>| {
        let page = Page { after: after.map(|after| after.to_string()), limit: 1 };
        world.store.get_health_of_revision(revision.id, page).await.unwrap()
    };
    let first = one_by_one(None).await;
    let second = one_by_one(Some(first.health_records[0].id)).await;
    assert_eq!([first.overall_status, second.overall_status], [HealthStatus::Degraded; 2], "of all pages");
    assert_eq!([first.health_records, second.health_records].concat(), reported.health_records);
    let status = HealthStatus::Degraded;
    let counts =
        StackDeploymentHealth { id: revision.id, status, healthy_agents: 1, degraded_agents: 1, failing_agents: 0 };
    let of_stack = world.store.get_health_of_stack(stack, ALL).await.unwrap();
    assert_eq!((of_stack.overall_status, of_stack.deployment_objects), (status, vec![counts]));
    let next = Page { after: Some(revision.id.to_string()), limit: 1 };
    assert_eq!(world.store.get_health_of_stack(stack, next).await.unwrap().deployment_objects, []);
    let fleet = world.store.list_fleet(ListScope::All, ALL).await.unwrap();
    assert_eq!(fleet.iter().map(|entry| (entry.degraded, entry.failing)).collect::<Vec<_>>(), [(1, 0), (0, 0)]);
    let unregistered = world.add_agent("unregistered", &[]).await.unwrap();
    let rejected =
        world.store.record_health(write_context(), unregistered, update(revision.id, HealthStatus::Healthy)).await;
    assert!(rejected.is_err());
}

fn update(id: RevisionId, status: HealthStatus) -> HealthStatusUpdate {
    let reported = DeploymentObjectHealthUpdate { id, status, summary: None, checked_at: at(5) };
    HealthStatusUpdate { deployment_objects: vec![reported] }
}

async fn agents_are_listed_by_name_and_by_page(world: World) {
    let [zero, one, two] = world.add_agents().await;
    let changes =
        UpdateAgentRequest { name: Some("first".to_owned()), status: Some(AgentStatus::Active), ..Default::default() };
    world.store.update_agent(write_context(), two, changes.clone()).await.unwrap();
    let ids = |agents: Vec<sindri_model::wire::Agent>| agents.into_iter().map(|agent| agent.id).collect::<Vec<_>>();
    assert_eq!(ids(world.store.list_agents(ALL).await.unwrap()), [zero, one, two], "agent-0, agent-1, first");
    let page = Page { after: Some(zero.to_string()), limit: 1 };
    assert_eq!(ids(world.store.list_agents(page).await.unwrap()), [one]);
    assert!(world.store.update_agent(write_context(), one, changes).await.is_err(), "the name is in use");
}
