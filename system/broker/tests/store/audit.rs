//! The audit log: an entry is written in the transaction of its change, or not at all.

use sindri_broker::{AuditFilter, RecordKind, StoreError, WriteContext};
use sindri_model::wire::AuditLog;

use crate::support::{World, at, contracts, stack, write_context};

contracts!(
    every_change_writes_an_entry_with_actor_and_resource,
    a_failed_change_writes_no_entry,
    entries_are_found_by_each_field_of_the_filter,
);

async fn entries(world: &World, filter: AuditFilter) -> Vec<AuditLog> {
    let (logs, total) = world.store.list_audit_log(AuditFilter { limit: 100, ..filter }).await.unwrap();
    assert_eq!(logs.len() as i64, total);
    logs
}

async fn every_change_writes_an_entry_with_actor_and_resource(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    world.submit(stack).await;
    world.store.delete_stack(write_context(), stack).await.unwrap();
    let actions: Vec<_> =
        entries(&world, AuditFilter::default()).await.into_iter().rev().map(|log| log.action).collect();
    let expected = [
        "generator.created",
        "agent.created",
        "agent.registered",
        "stack.created",
        "target.created",
        "deployment_object.created",
        "stack.deleted",
    ];
    assert_eq!(actions, expected);
    let newest = &entries(&world, AuditFilter::default()).await[0];
    assert_eq!((newest.actor_type.as_str(), newest.resource_id.clone()), ("admin", Some(stack.to_string())));
}

async fn a_failed_change_writes_no_entry(world: World) {
    let [_] = world.add_agents().await;
    world.add_stack("web").await;
    let before = entries(&world, AuditFilter::default()).await;
    let again = world.store.create_stack(write_context(), stack("web", world.generator)).await;
    assert!(matches!(again, Err(StoreError::AlreadyExists { kind: RecordKind::Stack, .. })));
    assert_eq!(entries(&world, AuditFilter::default()).await, before);
}

async fn entries_are_found_by_each_field_of_the_filter(world: World) {
    let [_] = world.add_agents().await;
    let late = WriteContext { time: at(100), ..write_context() };
    let created = world.store.create_stack(late, stack("web", world.generator)).await.unwrap();
    let by = |change: fn(&mut AuditFilter, String)| {
        let mut filter = AuditFilter::default();
        change(&mut filter, created.id.to_string());
        filter
    };
    for filter in [
        by(|filter, id| filter.resource_id = Some(id)),
        by(|filter, _| filter.action = Some("stack.created".to_owned())),
        by(|filter, _| filter.action = Some("stack.*".to_owned())),
        by(|filter, _| filter.resource_type = Some("stack".to_owned())),
        by(|filter, _| filter.from = Some(at(50))),
    ] {
        let found = entries(&world, filter.clone()).await;
        assert_eq!(found.len(), 1, "{filter:?}");
        assert_eq!(found[0].resource_id, Some(created.id.to_string()));
    }
    assert_eq!(entries(&world, by(|filter, _| filter.actor_type = Some("agent".to_owned()))).await, []);
    assert_eq!(entries(&world, by(|filter, _| filter.to = Some(at(50)))).await.len(), 3);
}
