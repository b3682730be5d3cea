//! Concurrent calls: visibility, notifications and exclusive operations.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sindri_broker::{
    AuditFilter, ListScope, NewRevision, Page, PostgresStore, RecordKind, Store, StoreChange, StoreError, WriteContext,
};
use sindri_model::wire::{AgentStatus, ApprovalRequest, EventStatus, UpdateAgentRequest};
use sindri_model::{ApprovalId, EventId, RevisionId, Sequence, StackId};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::deliveries::{acquire, webhook};
use crate::proxy::Proxy;
use crate::support::{ALL, World, at, contracts, entropy, event, revision, write_context, write_context_with_key};

const WRITERS: usize = 8;
const EACH: usize = 25;

contracts!(
    sequences_become_visible_in_their_order,
    concurrent_submissions_have_the_same_results_as_single_ones,
    removing_a_target_during_a_poll_loses_no_removal,
    a_deletion_marker_during_a_poll_is_not_lost,
    an_agent_that_is_created_during_the_deletion_of_its_predecessor_takes_over,
    a_webhook_that_is_deleted_during_submissions_fails_none,
);

async fn sequences_become_visible_in_their_order(world: World) {
    let [_] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let (store, is_over) = (world.store.clone(), Arc::new(AtomicBool::new(false)));
    let mut reader = JoinSet::new();
    reader.spawn({
        let (store, is_over) = (store.clone(), is_over.clone());
        async move {
            let mut seen = BTreeSet::new();
            loop {
                let is_last_read = is_over.load(Ordering::SeqCst);
                let now: BTreeSet<Sequence> = store
                    .list_revisions(stack, ALL)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|revision| revision.sequence_id)
                    .collect();
                let late =
                    now.difference(&seen).find(|sequence| seen.last().is_some_and(|highest| *sequence < highest));
                assert_eq!(late, None, "a sequence became visible after a higher one");
                seen = now;
                if is_last_read {
                    return seen.len();
                }
                tokio::task::yield_now().await;
            }
        }
    });
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for _ in 0..EACH {
                store.append_revision(write_context(), revision(stack, "a: 1")).await.unwrap();
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    is_over.store(true, Ordering::SeqCst);
    assert_eq!(reader.join_next().await.unwrap().unwrap(), WRITERS * EACH);
}

/// Some are for one stack, some repeat an idempotency key, some must be rejected; all may share a transaction.
async fn concurrent_submissions_have_the_same_results_as_single_ones(world: World) {
    let [agent, unregistered] = world.add_agents().await;
    let (one, two) = (world.add_stack("one").await, world.add_stack("two").await);
    world.target(agent, one).await.unwrap();
    world.target(agent, two).await.unwrap();
    let before = (
        world.store.get_target_version(agent).await.unwrap(),
        world.store.get_target_version(unregistered).await.unwrap(),
    );
    let nowhere = StackId::generate(&entropy());
    let submit = |write_context, stack| world.store.append_revision(write_context, revision(stack, "a: 1"));
    let submissions = (0..40).map(|number| match number % 4 {
        0 => submit(write_context(), one),
        1 => submit(write_context_with_key("same"), two),
        2 => submit(write_context(), nowhere),
        _ => submit(write_context_with_key(&format!("key-{number}")), one),
    });
    let mut results = join_all(submissions).await;
    let (mut of_one, mut of_two) = (Vec::new(), BTreeSet::new());
    for (number, result) in results.drain(..).enumerate() {
        match number % 4 {
            0 | 3 => of_one.push(result.unwrap()),
            1 => drop(of_two.insert(result.unwrap().id)),
            _ => assert!(matches!(result, Err(StoreError::NotFound { kind: RecordKind::Stack, .. })), "{result:?}"),
        }
    }
    assert_eq!(of_two.len(), 1, "the same key created one revision");
    of_one.sort_by_key(|revision| revision.sequence_id);
    assert_eq!(world.store.list_revisions(one, ALL).await.unwrap(), of_one, "each has a sequence of its own");
    let delivered = world.store.deliver_target_state(agent).await.unwrap();
    let newest: BTreeSet<RevisionId> = delivered.revisions.iter().map(|target| target.revision.id).collect();
    let last = of_one.last().unwrap();
    assert_eq!(
        newest,
        of_two.into_iter().chain([last.id]).collect(),
        "the newest revision of each stack, and nothing else"
    );
    assert!(delivered.version > before.0 && delivered.version >= last.sequence_id, "{delivered:?}");
    assert_eq!(world.store.get_target_version(unregistered).await.unwrap(), before.1, "other agents are not affected");
    let filter = AuditFilter { action: Some("deployment_object.created".to_owned()), ..AuditFilter::default() };
    assert_eq!(world.store.list_audit_log(filter).await.unwrap().1, 21, "an entry for each accepted submission");
}

async fn removing_a_target_during_a_poll_loses_no_removal(world: World) {
    let [agent] = world.add_agents().await;
    for round in 0..20 {
        let stack = world.add_stack(&format!("stack-{round}")).await;
        let submitted = world.submit(stack).await;
        world.target(agent, stack).await.unwrap();
        let (delivered, removed) = tokio::join!(
            world.store.deliver_target_state(agent),
            world.store.remove_target(write_context(), agent, stack)
        );
        removed.unwrap();
        let received = delivered.unwrap().revisions.iter().any(|target| target.revision.id == submitted.id);
        let polled: Vec<RevisionId> = world.poll(agent).await.into_iter().map(|(id, _)| id).collect();
        let mut removals = Vec::new();
        for id in polled {
            removals.push(world.store.get_revision(id).await.unwrap().revision.stack_id);
        }
        assert_eq!(removals.contains(&stack), received, "round {round}");
    }
}

async fn a_deletion_marker_during_a_poll_is_not_lost(world: World) {
    let [agent] = world.add_agents().await;
    for round in 0..20 {
        // Many large stacks, so that the poll takes its time.
        let mut stacks = Vec::new();
        for number in 0..5 {
            let stack = world.add_stack(&format!("stack-{round}-{number}")).await;
            let text = format!("a: {}", "x".repeat(20_000));
            world.store.append_revision(write_context(), revision(stack, &text)).await.unwrap();
            world.target(agent, stack).await.unwrap();
            stacks.push(stack);
        }
        let markers = stacks.iter().map(|stack| {
            let marker = NewRevision { yaml_content: String::new(), is_deletion_marker: true, ..revision(*stack, "") };
            world.store.append_revision(write_context(), marker)
        });
        let (delivered, markers) = tokio::join!(world.store.deliver_target_state(agent), join_all(markers));
        markers.into_iter().for_each(|marker| drop(marker.unwrap()));
        let later = world.store.deliver_target_state(agent).await.unwrap();
        for target in delivered.unwrap().revisions.iter().filter(|target| !target.revision.is_deletion_marker) {
            let stack = target.revision.stack_id;
            let removal = later.revisions.iter().find(|target| target.revision.stack_id == stack);
            assert!(removal.is_some_and(|target| target.revision.is_deletion_marker), "round {round}: {stack}");
        }
        for target in later.revisions {
            let success = event(agent, target.revision.id, EventStatus::Success);
            world.store.record_event(write_context(), success).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_change_of_one_broker_notifies_another_at_once() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 2).await.unwrap();
    other.await_remote_change().await.unwrap();
    let latest = other.get_position().await.unwrap().latest;
    let (notified, submitted) =
        tokio::join!(timeout(Duration::from_secs(3), other.await_remote_change()), world.submit(stack));
    notified.expect("notified before the periodic check").unwrap();
    let since = other.list_changes_since(latest).await.unwrap();
    assert_eq!(since.changes, [StoreChange::TargetState(agent, submitted.sequence_id)]);
}

#[tokio::test]
async fn two_brokers_never_acquire_the_same_message() {
    let Some(world) = World::postgres().await else { return };
    let [_] = world.add_agents().await;
    world.store.create_webhook(write_context(), webhook("all", &["stack.created"])).await.unwrap();
    for index in 0..60 {
        world.add_stack(&format!("stack-{index}")).await;
    }
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 4).await.unwrap();
    let mut acquired = Vec::new();
    for _ in 0..6 {
        let (one, two) = tokio::join!(
            world.store.acquire_deliveries(acquire("one", at(1))),
            other.acquire_deliveries(acquire("two", at(1)))
        );
        for delivery in one.unwrap().deliveries.into_iter().chain(two.unwrap().deliveries) {
            acquired.push(delivery.delivery.id);
        }
    }
    let distinct: BTreeSet<_> = acquired.iter().collect();
    assert_eq!(distinct.len(), acquired.len());
}

#[tokio::test]
async fn two_brokers_never_mark_the_same_agent_offline() {
    let Some(world) = World::postgres().await else { return };
    let agents: [_; 8] = world.add_agents().await;
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 4).await.unwrap();
    for agent in agents {
        let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..Default::default() };
        world.store.update_agent(write_context(), agent, active).await.unwrap();
        world.send_heartbeat(agent, 10).await;
    }
    let (one, two) = tokio::join!(
        world.store.mark_agents_offline(write_context(), at(20), 100),
        other.mark_agents_offline(write_context(), at(20), 100)
    );
    assert_eq!(one.unwrap() + two.unwrap(), agents.len());
}

#[tokio::test]
async fn an_event_that_is_committed_late_is_on_a_later_page() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let mut revisions = Vec::new();
    for name in ["web", "shop"] {
        let stack = world.add_stack(name).await;
        world.target(agent, stack).await.unwrap();
        revisions.push(world.submit(stack).await.id);
    }
    let proxy = Proxy::start(world.url.as_deref().unwrap()).await;
    let slow = PostgresStore::open(&proxy.url, 1).await.unwrap();
    let (late, early) =
        (event(agent, revisions[0], EventStatus::Success), event(agent, revisions[1], EventStatus::Success));
    let expected = BTreeSet::from([late.id, early.id]);
    proxy.delay_next_commit(Duration::from_millis(500));
    let mut writers = JoinSet::new();
    writers.spawn(async move { slow.record_event(write_context(), late).await.map(drop) });
    proxy.await_frozen().await;
    world.store.record_event(write_context(), early).await.unwrap();
    for scope in [None, Some(agent)] {
        let list = async |after: Option<EventId>| {
            let page = Page { after: after.map(|id| id.to_string()), limit: 1 };
            let listed = match scope {
                None => world.store.list_events(ListScope::All, page).await,
                Some(agent) => world.store.list_events_of_agent(agent, page).await,
            };
            listed.unwrap().into_iter().map(|event| event.id).collect::<Vec<_>>()
        };
        let (mut seen, mut after) = (BTreeSet::new(), None);
        for _ in 0..expected.len() {
            let page = list(after).await;
            after = page.last().copied().or(after);
            seen.extend(page);
        }
        while writers.join_next().await.is_some() {}
        seen.extend(list(after).await);
        assert_eq!(seen, expected, "of {scope:?}");
    }
}

#[tokio::test]
async fn a_leader_sees_the_last_event_of_the_leader_before() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await.id;
    world.poll(agent).await;
    let proxy = Proxy::start(world.url.as_deref().unwrap()).await;
    let slow = PostgresStore::open(&proxy.url, 1).await.unwrap();
    world.store.set_leader(agent, "one".to_owned()).await.unwrap();
    let of_one = || WriteContext { process: Some("one".to_owned()), ..write_context() };
    let late = event(agent, revision, EventStatus::Failure);
    let late_id = late.id;
    proxy.delay_next_commit(Duration::from_millis(500));
    let context = of_one();
    let mut writers = JoinSet::new();
    writers.spawn(async move { slow.record_event(context, late).await.map(drop) });
    proxy.await_frozen().await;
    world.store.set_leader(agent, "two".to_owned()).await.unwrap();
    let seen = world.store.list_outcomes(agent, ALL).await.unwrap();
    assert_eq!(seen.iter().map(|event| event.id).collect::<Vec<_>>(), [late_id]);
    writers.join_next().await.unwrap().unwrap().unwrap();
    let rejected = world.store.record_event(of_one(), event(agent, revision, EventStatus::Failure)).await;
    assert_eq!(rejected, Err(StoreError::OtherLeader("two".to_owned())));
}

#[tokio::test]
async fn an_approval_that_is_committed_late_is_on_a_later_page() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let mut requests = Vec::new();
    for name in ["web", "shop"] {
        let stack = world.add_stack(name).await;
        world.target(agent, stack).await.unwrap();
        let deployment_object_id = world.submit(stack).await.id;
        let (digest, plan) = ("a".repeat(64), String::new());
        requests.push((stack, ApprovalRequest { deployment_object_id, digest, reasons: Vec::new(), plan }));
    }
    world.poll(agent).await;
    let proxy = Proxy::start(world.url.as_deref().unwrap()).await;
    let slow = PostgresStore::open(&proxy.url, 1).await.unwrap();
    let [(late_stack, late), (early_stack, early)] = <[_; 2]>::try_from(requests).unwrap();
    proxy.delay_next_commit(Duration::from_millis(500));
    let mut writers = JoinSet::new();
    writers.spawn(async move { slow.request_approval(write_context(), agent, late_stack, late).await.unwrap() });
    proxy.await_frozen().await;
    // Its id is higher, because it begins with the time.
    let context = WriteContext { time: at(1), ..write_context() };
    world.store.request_approval(context, agent, early_stack, early).await.unwrap();
    let list = async |after: Option<ApprovalId>| {
        let page = Page { after: after.map(|id| id.to_string()), limit: 1 };
        let listed = world.store.list_approvals(None, None, page).await.unwrap();
        listed.into_iter().map(|approval| approval.id).collect::<Vec<_>>()
    };
    let mut seen = list(None).await;
    while writers.join_next().await.is_some() {}
    seen.extend(list(seen.last().copied()).await);
    assert_eq!(seen.len(), 2);
    let all = world.store.list_approvals(None, None, ALL).await.unwrap();
    assert_eq!(seen, all.into_iter().map(|approval| approval.id).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_same_approval_is_requested_by_two_processes_at_once() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let deployment_object_id = world.submit(stack).await.id;
    world.poll(agent).await;
    let (digest, plan) = ("a".repeat(64), String::new());
    let request = ApprovalRequest { deployment_object_id, digest, reasons: Vec::new(), plan };
    let ask = || world.store.request_approval(write_context(), agent, stack, request.clone());
    let approvals = join_all((0..6).map(|_| ask())).await;
    let ids: BTreeSet<_> = approvals.into_iter().map(|approval| approval.unwrap().id).collect();
    assert_eq!(ids.len(), 1);
}

async fn an_agent_that_is_created_during_the_deletion_of_its_predecessor_takes_over(world: World) {
    let [_] = world.add_agents().await;
    for round in 0..20 {
        let name = format!("east-{round}");
        let old = world.add_agent(&name, &[world.generator]).await.unwrap();
        let stack = world.add_stack(&format!("stack-{round}")).await;
        world.submit(stack).await;
        world.target(old, stack).await.unwrap();
        let revision = world.poll(old).await[0].0;
        world.report(old, revision, EventStatus::Success).await.unwrap();
        let create = async {
            loop {
                match world.add_agent(&name, &[world.generator]).await {
                    Ok(agent) => return agent,
                    Err(StoreError::AlreadyExists { .. } | StoreError::Unavailable) => tokio::task::yield_now().await,
                    Err(error) => panic!("round {round}: {error}"),
                }
            }
        };
        let (deleted, new) = tokio::join!(world.store.delete_agent(write_context(), old), create);
        deleted.unwrap();
        world.store.delete_stack(write_context(), stack).await.unwrap();
        assert_eq!(world.poll(new).await.len(), 1, "round {round}: the successor removes the stack");
    }
}

async fn a_webhook_that_is_deleted_during_submissions_fails_none(world: World) {
    let [_] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for round in 0..20 {
        let record = webhook("all", &["*"]);
        let hook = record.public.id;
        world.store.create_webhook(write_context(), record).await.unwrap();
        let submit = |number: i32| {
            let text = format!("a: {round}-{number}");
            let store = world.store.clone();
            async move {
                // A client repeats what was not carried out.
                loop {
                    match store.append_revision(write_context(), revision(stack, &text)).await {
                        Err(StoreError::Unavailable) => tokio::task::yield_now().await,
                        ended => return ended.map(drop),
                    }
                }
            }
        };
        let delete = async {
            loop {
                match world.store.delete_webhook(write_context(), hook).await {
                    Err(StoreError::Unavailable) => tokio::task::yield_now().await,
                    ended => return ended,
                }
            }
        };
        let (submitted, deleted) = tokio::join!(join_all((0..8).map(submit)), delete);
        submitted.into_iter().for_each(|result| result.unwrap());
        deleted.unwrap();
    }
}
