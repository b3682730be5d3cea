//! Many at once: what is visible, who is told, and who may act.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sindri_broker::{AuditFilter, Change, Noun, PostgresStore, Store, StoreError};
use sindri_model::wire::{AgentStatus, UpdateAgentRequest};
use sindri_model::{RevisionId, Sequence, StackId};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::deliveries::{claim, webhook};
use crate::support::{ALL, World, at, contracts, entropy, revision, stamp, stamp_with_key};

const WRITERS: usize = 8;
const EACH: usize = 25;

contracts!(
    sequences_become_visible_in_their_order,
    submissions_at_once_are_answered_as_if_each_were_alone,
    taking_away_and_handing_out_at_once_loses_no_removal,
);

async fn sequences_become_visible_in_their_order(world: World) {
    let [_] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let (store, is_over) = (world.store.clone(), Arc::new(AtomicBool::new(false)));
    let mut reader = JoinSet::new();
    reader.spawn({
        let (store, is_over) = (store.clone(), is_over.clone());
        async move {
            let mut seen = BTreeSet::new();
            loop {
                let last_look = is_over.load(Ordering::SeqCst);
                let now: BTreeSet<Sequence> =
                    store.revisions(stack, ALL).await.unwrap().into_iter().map(|object| object.sequence_id).collect();
                let late =
                    now.difference(&seen).find(|sequence| seen.last().is_some_and(|highest| *sequence < highest));
                assert_eq!(late, None, "it became visible after a higher one");
                seen = now;
                if last_look {
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
                store.append_revision(stamp(), revision(stack, "a: 1")).await.unwrap();
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    is_over.store(true, Ordering::SeqCst);
    assert_eq!(reader.join_next().await.unwrap().unwrap(), WRITERS * EACH);
}

/// Some for one stack, some that repeat a key, some that must be refused: whatever shares a transaction.
async fn submissions_at_once_are_answered_as_if_each_were_alone(world: World) {
    let [agent, stranger] = world.with_agents().await;
    let (one, two) = (world.add_stack("one").await, world.add_stack("two").await);
    world.target(agent, one).await.unwrap();
    world.target(agent, two).await.unwrap();
    let before = (world.store.version_of(agent).await.unwrap(), world.store.version_of(stranger).await.unwrap());
    let nowhere = StackId::mint(&entropy());
    let submit = |stamp, stack| world.store.append_revision(stamp, revision(stack, "a: 1"));
    let submissions = (0..40).map(|number| match number % 4 {
        0 => submit(stamp(), one),
        1 => submit(stamp_with_key("same"), two),
        2 => submit(stamp(), nowhere),
        _ => submit(stamp_with_key(&format!("key-{number}")), one),
    });
    let mut answers = join_all(submissions).await;
    let (mut of_one, mut of_two) = (Vec::new(), BTreeSet::new());
    for (number, answer) in answers.drain(..).enumerate() {
        match number % 4 {
            0 | 3 => of_one.push(answer.unwrap()),
            1 => drop(of_two.insert(answer.unwrap().id)),
            _ => assert!(matches!(answer, Err(StoreError::NotFound { noun: Noun::Stack, .. })), "{answer:?}"),
        }
    }
    assert_eq!(of_two.len(), 1, "the same key made one revision");
    of_one.sort_by_key(|object| object.sequence_id);
    assert_eq!(world.store.revisions(one, ALL).await.unwrap(), of_one, "each has a number of its own");
    let handed = world.store.hand_out(agent).await.unwrap();
    let newest: BTreeSet<RevisionId> = handed.objects.iter().map(|desired| desired.object.id).collect();
    let last = of_one.last().unwrap();
    assert_eq!(newest, of_two.into_iter().chain([last.id]).collect(), "the newest of each stack, and nothing else");
    assert!(handed.version > before.0 && handed.version >= last.sequence_id, "{handed:?}");
    assert_eq!(world.store.version_of(stranger).await.unwrap(), before.1, "nobody else is bothered");
    let filter = AuditFilter { action: Some("deployment_object.created".to_owned()), ..AuditFilter::default() };
    assert_eq!(world.store.audit_logs(filter).await.unwrap().1, 21, "an entry for each that was accepted");
}

async fn taking_away_and_handing_out_at_once_loses_no_removal(world: World) {
    let [agent] = world.with_agents().await;
    for round in 0..20 {
        let stack = world.add_stack(&format!("stack-{round}")).await;
        let submitted = world.submit(stack).await;
        world.target(agent, stack).await.unwrap();
        let (handed, taken) =
            tokio::join!(world.store.hand_out(agent), world.store.remove_target(stamp(), agent, stack));
        taken.unwrap();
        let received = handed.unwrap().objects.iter().any(|desired| desired.object.id == submitted.id);
        let told: Vec<RevisionId> = world.poll(agent).await.into_iter().map(|(id, _)| id).collect();
        let mut removals = Vec::new();
        for id in told {
            removals.push(world.store.revision(id).await.unwrap().object.stack_id);
        }
        assert_eq!(removals.contains(&stack), received, "round {round}");
    }
}

#[tokio::test]
async fn a_change_of_one_broker_is_heard_by_another_at_once() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 2).await.unwrap();
    other.heard().await.unwrap();
    let latest = other.era().await.unwrap().latest;
    let (heard, submitted) = tokio::join!(timeout(Duration::from_secs(3), other.heard()), world.submit(stack));
    heard.expect("heard before the periodic look").unwrap();
    let news = other.news(latest).await.unwrap();
    assert_eq!(news.changes, [Change::DesiredSet(agent, submitted.sequence_id)]);
}

#[tokio::test]
async fn two_brokers_never_take_the_same_message() {
    let Some(world) = World::postgres().await else { return };
    let [_] = world.with_agents().await;
    world.store.create_webhook(stamp(), webhook("all", &["stack.created"])).await.unwrap();
    for index in 0..60 {
        world.add_stack(&format!("stack-{index}")).await;
    }
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 4).await.unwrap();
    let mut taken = Vec::new();
    for _ in 0..6 {
        let (one, two) = tokio::join!(
            world.store.claim_deliveries(claim("one", at(1))),
            other.claim_deliveries(claim("two", at(1)))
        );
        for claimed in one.unwrap().deliveries.into_iter().chain(two.unwrap().deliveries) {
            taken.push(claimed.delivery.id);
        }
    }
    let distinct: BTreeSet<_> = taken.iter().collect();
    assert_eq!(distinct.len(), taken.len());
}

#[tokio::test]
async fn two_brokers_never_call_the_same_agent_offline() {
    let Some(world) = World::postgres().await else { return };
    let agents: [_; 8] = world.with_agents().await;
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 4).await.unwrap();
    for agent in agents {
        let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..Default::default() };
        world.store.update_agent(stamp(), agent, active).await.unwrap();
        world.beat(agent, 10).await;
    }
    let (one, two) =
        tokio::join!(world.store.note_offline(stamp(), at(20), 100), other.note_offline(stamp(), at(20), 100));
    assert_eq!(one.unwrap() + two.unwrap(), agents.len());
}
