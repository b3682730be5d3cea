//! Deletion of old records: everything that no target state needs, and nothing else.

use std::time::Duration;

use sindri_broker::{
    AuditFilter, DeliveryFilter, Heartbeat, ListScope, RetentionCutoffs, SqliteStore, StoreError, WriteContext,
};
use sindri_model::wire::{
    Admin, AdminRole, AgentEvent, ApprovalRequest, ApprovalState, DeploymentObjectHealthUpdate, EventStatus,
    HealthStatus, HealthStatusUpdate,
};
use sindri_model::{AdminId, AgentId, RevisionId};

use crate::deliveries;
use crate::support::{
    ALL, World, at, contracts, entropy, event, key, revision, run_sql, write_context, write_context_with_key,
};

contracts!(
    records_of_superseded_revisions_are_deleted_and_those_of_target_states_stay,
    a_purge_deletes_at_most_its_limit_of_each_kind,
    of_the_reports_about_a_newest_revision_the_last_stays,
    a_message_that_is_not_delivered_is_abandoned,
    what_was_deleted_is_forgotten_when_no_agent_has_to_remove_it,
    a_person_who_was_deleted_stays_locked_out,
);

/// Every table, and what keeps it small.
const BOUNDS: [(&str, &str); 28] = [
    ("admins", "administrators, and retention of deleted ones"),
    ("agent_annotations", "agents, each with its annotations"),
    ("agent_labels", "agents, each with its labels"),
    ("agents", "agents, and retention of deleted ones"),
    ("approvals", "retention: one per agent and newest revision, and those that are pending"),
    ("assignments", "agents times stacks, and retention of removed ones"),
    ("audit", "retention"),
    ("changes", "kinds of changes"),
    ("deliveries", "retention: those of seven days, and 1,000 completed ones per subscription"),
    ("events", "retention: one per agent and revision of a target state"),
    ("facts", "kinds of facts"),
    ("generators", "generators, and retention of deleted ones"),
    ("health", "retention: agents times newest revisions"),
    ("keys", "two per holder"),
    ("meta", "kinds of numbers"),
    ("proposal_plans", "proposals, and bytes of all proposals together"),
    ("proposals", "retention: those of ten minutes, and bytes of all of them together"),
    ("registrations", "agents times generators"),
    ("requests", "retention: idempotency keys of seven days"),
    ("revisions", "retention: one per stack, and removals that are not confirmed"),
    ("secrets", "kinds of secrets"),
    ("stack_annotations", "stacks, each with its annotations"),
    ("stack_labels", "stacks, each with its labels"),
    ("stack_status", "assignments"),
    ("stacks", "stacks, and retention of deleted ones that every agent has removed"),
    ("targets", "agents times stacks"),
    ("versions", "agents"),
    ("webhooks", "subscriptions"),
];

#[test]
fn every_table_has_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    drop(SqliteStore::open(&path, None).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut tables = connection.prepare(sql).unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(tables, BOUNDS.map(|(table, _)| table), "a new table needs a bound");
}

#[tokio::test]
async fn no_row_stays_of_what_was_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    let world = World::sqlite_at(&path);
    what_was_deleted_is_forgotten_when_no_agent_has_to_remove_it(world).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let left: Vec<_> = BOUNDS.iter().map(|(table, _)| (*table, count(table))).filter(|(_, rows)| *rows > 0).collect();
    let settings = ["changes", "facts", "meta", "secrets"];
    let left: Vec<_> = left.into_iter().filter(|(table, _)| !settings.contains(table)).collect();
    assert_eq!(left, [], "rows that nothing needs");
}

async fn of_the_reports_about_a_newest_revision_the_last_stays(world: World) {
    let [one, two] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
    }
    let revision = world.submit(stack).await;
    for agent in [one, two] {
        world.poll(agent).await;
        for status in [EventStatus::Failure, EventStatus::Success, EventStatus::Failure] {
            world.report(agent, revision.id, status).await.unwrap();
        }
    }
    let mut approvals = Vec::new();
    for digit in ["a", "b", "c"] {
        let request = ApprovalRequest {
            deployment_object_id: revision.id,
            digest: digit.repeat(64),
            reasons: Vec::new(),
            plan: String::new(),
        };
        let approval = world.store.request_approval(write_context(), one, stack, request).await.unwrap();
        let decided = world.store.decide_approval(write_context(), approval.id, None, ApprovalState::Approved).await;
        approvals.push(decided.unwrap());
    }
    let events = async |agent| world.store.list_events_of_agent(agent, ALL).await.unwrap();
    let last = [events(one).await.pop().unwrap(), events(two).await.pop().unwrap()];
    while world.store.purge(everything(), 2).await.unwrap() > 0 {}
    assert_eq!([events(one).await, events(two).await], last.map(|last| vec![last]));
    assert_eq!(world.store.list_approvals(None, None, ALL).await.unwrap(), approvals[2..]);
}

async fn a_message_that_is_not_delivered_is_abandoned(world: World) {
    world.add_agents::<0>().await;
    let webhook = deliveries::add(&world, deliveries::webhook("off", &["*"])).await;
    world.add_stack("web").await;
    let list = async || {
        let filter = DeliveryFilter { webhook, status: None, offset: 0, page: ALL };
        world.store.list_deliveries(filter).await.unwrap()
    };
    assert_eq!(list().await[0].status, "pending");
    let before = |second| RetentionCutoffs { waiting_messages: Some(at(second)), ..RetentionCutoffs::default() };
    assert_eq!(world.store.purge(before(0), 100).await.unwrap(), 0, "the message is not old enough");
    assert_eq!(world.store.purge(before(1), 100).await.unwrap(), 1);
    let abandoned = list().await.remove(0);
    assert_eq!((abandoned.status.as_str(), abandoned.completed_at), ("dead", Some(at(7 * 24 * 60 * 60))));
    assert!(world.store.acquire_deliveries(deliveries::acquire("one", at(10))).await.unwrap().deliveries.is_empty());
    assert_eq!(world.store.purge(before(1), 100).await.unwrap(), 0);
}

/// Cutoffs after everything that the test has written.
fn everything() -> RetentionCutoffs {
    let before = Some(at(1_000));
    RetentionCutoffs {
        events: before,
        audit: before,
        revisions: before,
        idempotency_keys: before,
        waiting_messages: before,
        expired_proposals: before,
    }
}

async fn report_health(world: &World, agent: AgentId, revision: RevisionId) {
    let health =
        DeploymentObjectHealthUpdate { id: revision, status: HealthStatus::Healthy, checked_at: at(1), summary: None };
    let update = HealthStatusUpdate { deployment_objects: vec![health] };
    world.store.record_health(write_context(), agent, update).await.unwrap();
}

async fn records_of_superseded_revisions_are_deleted_and_those_of_target_states_stay(world: World) {
    let [agent] = world.add_agents().await;
    let (web, gone) = (world.add_stack("web").await, world.add_stack("gone").await);
    for stack in [web, gone] {
        world.target(agent, stack).await.unwrap();
    }
    let mut revisions = Vec::new();
    for text in ["a: 1", "a: 2", "a: 3"] {
        let submitted = world.store.append_revision(write_context_with_key(text), revision(web, text)).await.unwrap();
        world.submit(gone).await;
        world.poll(agent).await;
        world.report(agent, submitted.id, EventStatus::Success).await.unwrap();
        report_health(&world, agent, submitted.id).await;
        revisions.push(submitted);
    }
    world.store.remove_target(write_context(), agent, gone).await.unwrap();
    let before = world.store.get_target_state(agent).await.unwrap();
    assert_eq!(before.revisions.len(), 2, "a revision and a removal");
    assert_eq!(world.store.purge(RetentionCutoffs::default(), 100).await.unwrap(), 0);
    while world.store.purge(everything(), 100).await.unwrap() > 0 {}
    let after = world.store.get_target_state(agent).await.unwrap();
    assert_eq!(crate::support::revision_ids(&after), crate::support::revision_ids(&before));
    assert_eq!(world.store.list_revisions(web, ALL).await.unwrap(), revisions[2..]);
    let missing = world.store.get_revision(revisions[0].id).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    let events = world.store.list_events_of_agent(agent, ALL).await.unwrap();
    assert_eq!(events.iter().map(|event| event.deployment_object_id).collect::<Vec<_>>(), [revisions[2].id]);
    assert_eq!(world.store.list_outcomes(agent, ALL).await.unwrap().len(), 1);
    assert_eq!(world.store.get_health_of_revision(revisions[2].id, ALL).await.unwrap().health_records.len(), 1);
    assert_eq!(world.store.list_audit_log(AuditFilter { limit: 10, ..Default::default() }).await.unwrap().1, 0);
    // The key is forgotten, so the request is a new one.
    let again = world.store.append_revision(write_context_with_key("a: 1"), revision(web, "a: 1")).await.unwrap();
    assert!(again.sequence_id > revisions[2].sequence_id);
    world.store.record_event(write_context(), event(agent, again.id, EventStatus::Success)).await.unwrap();
}

async fn what_was_deleted_is_forgotten_when_no_agent_has_to_remove_it(world: World) {
    let [one, two] = world.add_agents().await;
    let (web, gone) = (world.add_stack("web").await, world.add_stack("gone").await);
    for (agent, stack) in [(one, web), (one, gone), (two, gone)] {
        world.target(agent, stack).await.unwrap();
    }
    world.annotate_stack(gone, "sindri.dev/drift", "detect").await;
    let kept = world.submit(web).await;
    world.submit(gone).await;
    for agent in [one, two] {
        for (revision, _) in world.poll(agent).await {
            world.report(agent, revision, EventStatus::Success).await.unwrap();
            report_health(&world, agent, revision).await;
        }
    }
    world.store.delete_stack(write_context(), gone).await.unwrap();
    let marker = world.only_removal(two).await;
    world.poll(one).await;
    world.report(one, marker, EventStatus::Success).await.unwrap();
    let purge = async || while world.store.purge(everything(), 100).await.unwrap() > 0 {};
    let events = async || {
        let events = world.store.list_events(ListScope::All, ALL).await.unwrap();
        events.into_iter().map(|event| (event.agent_id, event.deployment_object_id)).collect::<Vec<_>>()
    };
    purge().await;
    assert_eq!(world.only_removal(two).await, marker, "however long it is away");
    assert_eq!(world.store.get_revision(marker).await.unwrap().revision.stack_id, gone);
    // Its deletion tells that nothing is left to remove.
    world.store.delete_agent(write_context(), two).await.unwrap();
    purge().await;
    let missing = world.store.get_revision(marker).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    assert_eq!(events().await, [(one, kept.id)]);
    assert_eq!(world.poll(one).await, [(kept.id, false)]);
    // The agent never comes back, so that its last report is of no use.
    world.store.delete_agent(write_context(), one).await.unwrap();
    world.store.delete_generator(write_context(), world.generator).await.unwrap();
    purge().await;
    assert_eq!(events().await, []);
    let missing = world.store.get_revision(kept.id).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
}

async fn a_person_who_was_deleted_stays_locked_out(world: World) {
    world.add_agents::<0>().await;
    let admin = |name: &str| Admin {
        id: AdminId::generate(&entropy()),
        created_at: at(0),
        name: name.to_owned(),
        role: AdminRole::Admin,
        key_expires_at: None,
    };
    world.store.create_admin(write_context(), admin("first"), key()).await.unwrap();
    let (bob, other) = (admin("oidc:bob"), admin("other"));
    assert!(world.store.record_person(write_context(), bob.clone()).await.unwrap());
    world.store.create_admin(write_context(), other.clone(), key()).await.unwrap();
    for deleted in [bob.id, other.id] {
        world.store.delete_admin(write_context(), deleted).await.unwrap();
    }
    while world.store.purge(everything(), 100).await.unwrap() > 0 {}
    assert!(!world.store.record_person(write_context(), bob).await.unwrap(), "the record is still there");
    assert!(world.store.record_person(write_context(), other).await.unwrap(), "it was forgotten");
}

/// A transaction that targets a stack again has locked the counter and changed the old assignment when the purge begins.
#[tokio::test]
async fn a_stack_that_is_targeted_again_during_a_purge_stays_assigned() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let submitted = world.submit(stack).await;
    world.target(agent, stack).await.unwrap();
    world.poll(agent).await;
    world.store.remove_target(write_context(), agent, stack).await.unwrap();
    let removal = world.only_removal(agent).await;
    world.report(agent, removal, EventStatus::Success).await.unwrap();
    let url = world.url.as_ref().unwrap();
    let target = format!(
        "BEGIN;
         UPDATE meta SET value = value + 1 WHERE name = 'tick';
         UPDATE assignments SET wanted = 1, removal = NULL, confirmed = 0 WHERE agent_id = '{agent}';
         SELECT pg_sleep(0.5);
         COMMIT"
    );
    let purge = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        while world.store.purge(everything(), 100).await.unwrap() > 0 {}
    };
    tokio::join!(run_sql(url, &target), purge);
    assert_eq!(world.poll(agent).await, [(submitted.id, false)]);
}

async fn a_purge_deletes_at_most_its_limit_of_each_kind(world: World) {
    let [_] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for _ in 0..7 {
        world.submit(stack).await;
    }
    let cutoffs = RetentionCutoffs { audit: None, ..everything() };
    let mut deleted = Vec::new();
    loop {
        match world.store.purge(cutoffs.clone(), 4).await.unwrap() {
            0 => break,
            count => deleted.push(count),
        }
    }
    assert_eq!(deleted, [4, 2]);
    assert_eq!(world.store.list_revisions(stack, ALL).await.unwrap().len(), 1);
}

#[tokio::test]
async fn in_24_hours_of_1000_agents_the_store_stays_within_its_retention() {
    const AGENTS: usize = 1_000;
    const HOUR: i64 = 60 * 60;
    const KEPT_HOURS: i64 = 3;
    let world = World::sqlite();
    let agents = world.add_agents::<AGENTS>().await;
    let stack = world.add_stack("web").await;
    for agent in agents {
        world.target(agent, stack).await.unwrap();
    }
    let mut sizes = Vec::new();
    for hour in 1..=24 {
        let time = at(hour * HOUR);
        let context = || WriteContext { time, ..write_context() };
        let submitted = world.store.append_revision(context(), revision(stack, &format!("a: {hour}"))).await.unwrap();
        let heartbeat = || Heartbeat { received_at: time, report: Default::default() };
        world.store.record_heartbeats(agents.map(|agent| (agent, heartbeat())).to_vec()).await.unwrap();
        for agent in agents {
            let reported = AgentEvent { created_at: time, ..event(agent, submitted.id, EventStatus::Success) };
            world.store.record_event(context(), reported).await.unwrap();
        }
        let before = Some(at((hour - KEPT_HOURS) * HOUR));
        let cutoffs = RetentionCutoffs {
            events: before,
            audit: before,
            revisions: before,
            idempotency_keys: before,
            waiting_messages: before,
            expired_proposals: before,
        };
        while world.store.purge(cutoffs.clone(), 200).await.unwrap() > 0 {}
        let audited = world.store.list_audit_log(AuditFilter { limit: 1, ..Default::default() }).await.unwrap().1;
        let events = world.store.list_events(ListScope::All, ALL).await.unwrap().len();
        sizes.push((events, audited, world.store.list_revisions(stack, ALL).await.unwrap().len()));
    }
    let hours = usize::try_from(KEPT_HOURS).unwrap() + 1;
    let (events, audited, revisions) = sizes[sizes.len() - 1];
    assert!(events <= hours * AGENTS && revisions <= hours, "{sizes:?}");
    assert!(audited <= i64::try_from(hours * (AGENTS + 1)).unwrap(), "{sizes:?}");
    assert_eq!(sizes[5], sizes[23], "the size does not grow: {sizes:?}");
    for agent in agents {
        assert_eq!(world.poll(agent).await.len(), 1, "every agent has its target state");
        assert_eq!(world.store.list_outcomes(agent, ALL).await.unwrap().len(), 1);
    }
}
