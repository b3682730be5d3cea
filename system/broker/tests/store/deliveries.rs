//! Webhook messages: queued in the transaction of their event, sent by one sender at a time.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sindri_broker::{
    AcquireDeliveries, AcquiredDeliveries, AttemptOutcome, DeliveryAttempt, DeliveryFilter, EncryptedParts,
    WebhookRecord,
};
use sindri_model::wire::{AgentStatus, EventStatus, UpdateAgentRequest, WebhookFilters, WebhookResponse};
use sindri_model::{AgentId, DeliveryId, WebhookId};

use crate::support::{ALL, World, at, contracts, entropy, seconds, write_context};

contracts!(
    a_message_is_queued_in_the_transaction_of_its_event,
    filters_and_disabled_subscriptions_limit_the_queued_messages,
    a_message_is_acquired_by_one_sender_at_a_time,
    a_disabled_subscription_gets_no_messages_until_it_is_enabled,
    a_sender_that_does_not_respond_loses_its_messages,
    the_history_shows_retries_and_abandoned_messages,
    agents_acquire_messages_for_their_labels,
    a_long_queue_of_one_subscription_does_not_delay_another,
    a_silent_agent_is_marked_offline_once_until_its_next_heartbeat,
);

pub fn webhook(name: &str, events: &[&str]) -> WebhookRecord {
    let public = WebhookResponse {
        id: WebhookId::generate(&entropy()),
        name: name.to_owned(),
        has_url: true,
        has_auth_header: false,
        event_types: events.iter().map(|event| (*event).to_owned()).collect(),
        filters: None,
        target_labels: None,
        enabled: true,
        max_retries: 2,
        timeout_seconds: 5,
        created_by: None,
        created_at: at(0),
        updated_at: at(0),
    };
    WebhookRecord { public, encrypted: EncryptedParts { url: vec![1], auth_header: None, signing_secret: vec![2] } }
}

pub fn acquire(sender: &str, now: Timestamp) -> AcquireDeliveries {
    let (limit, limit_each, busy) = (10, 10, BTreeSet::new());
    AcquireDeliveries { sender: sender.to_owned(), now, until: now + seconds(60), limit, limit_each, busy }
}

pub async fn add(world: &World, webhook: WebhookRecord) -> WebhookId {
    let id = webhook.public.id;
    world.store.create_webhook(write_context(), webhook).await.unwrap();
    id
}

pub async fn queued(world: &World, webhook: WebhookId) -> Vec<String> {
    let filter = DeliveryFilter { webhook, status: None, offset: 0, page: ALL };
    world.store.list_deliveries(filter).await.unwrap().into_iter().rev().map(|delivery| delivery.event_type).collect()
}

fn ids(acquired: &AcquiredDeliveries) -> Vec<DeliveryId> {
    acquired.deliveries.iter().map(|acquired| acquired.delivery.id).collect()
}

async fn a_message_is_queued_in_the_transaction_of_its_event(world: World) {
    let [agent] = world.add_agents().await;
    let all = add(&world, webhook("all", &["*"])).await;
    let some = add(&world, webhook("some", &["deployment.*"])).await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await;
    world.poll(agent).await;
    world.report(agent, revision.id, EventStatus::Success).await.unwrap();
    world.report(agent, revision.id, EventStatus::Failure).await.unwrap();
    world.store.delete_stack(write_context(), stack).await.unwrap();
    let marker = world.only_removal(agent).await;
    world.report(agent, marker, EventStatus::Success).await.unwrap();
    let deployments = ["deployment.created", "deployment.applied", "deployment.failed", "deployment.deleted"];
    assert_eq!(queued(&world, some).await, deployments);
    let mut everything = deployments.to_vec();
    everything.insert(0, "stack.created");
    everything.insert(4, "stack.deleted");
    assert_eq!(queued(&world, all).await, everything);
    let failed = world.store.create_stack(write_context(), crate::support::stack("", world.generator)).await;
    assert!(failed.is_ok());
    let before = queued(&world, all).await.len();
    assert!(world.store.create_stack(write_context(), crate::support::stack("", world.generator)).await.is_err());
    assert_eq!(queued(&world, all).await.len(), before, "only committed changes are published");
}

async fn filters_and_disabled_subscriptions_limit_the_queued_messages(world: World) {
    let [one, two] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let mut of_one = webhook("one", &["deployment.applied"]);
    of_one.public.filters = Some(WebhookFilters { agent_id: Some(one), stack_id: Some(stack) });
    let mut off = webhook("off", &["*"]);
    off.public.enabled = false;
    let (of_one, off) = (add(&world, of_one).await, add(&world, off).await);
    let revision = world.submit(stack).await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
        world.poll(agent).await;
        world.report(agent, revision.id, EventStatus::Success).await.unwrap();
    }
    assert_eq!(queued(&world, of_one).await, ["deployment.applied"]);
    assert_eq!(queued(&world, off).await.len(), 0);
}

async fn a_message_is_acquired_by_one_sender_at_a_time(world: World) {
    let [_] = world.add_agents().await;
    add(&world, webhook("all", &["stack.created"])).await;
    for name in ["a", "b", "c"] {
        world.add_stack(name).await;
    }
    let first = world.store.acquire_deliveries(AcquireDeliveries { limit: 2, ..acquire("one", at(1)) }).await.unwrap();
    let second = world.store.acquire_deliveries(acquire("two", at(1))).await.unwrap();
    assert_eq!((first.deliveries.len(), second.deliveries.len()), (2, 1));
    assert!(ids(&second).iter().all(|id| !ids(&first).contains(id)));
    assert_eq!(first.deliveries[0].webhook.encrypted.url, [1]);
    let third = world.store.acquire_deliveries(acquire("three", at(2))).await.unwrap();
    assert_eq!(ids(&third), []);
    assert_eq!(third.next_at, Some(at(61)), "the time at which the first sender loses its messages");
}

async fn a_disabled_subscription_gets_no_messages_until_it_is_enabled(world: World) {
    let [_] = world.add_agents().await;
    let hook = add(&world, webhook("hook", &["*"])).await;
    world.add_stack("web").await;
    let enable = |enabled| {
        world.store.update_webhook(write_context(), hook, Box::new(move |hook| hook.public.enabled = enabled))
    };
    assert!(!enable(false).await.unwrap().enabled);
    let acquired = world.store.acquire_deliveries(acquire("one", at(10))).await.unwrap();
    assert_eq!((acquired.deliveries.len(), acquired.next_at), (0, None));
    assert!(enable(true).await.unwrap().enabled);
    assert_eq!(world.store.acquire_deliveries(acquire("one", at(10))).await.unwrap().deliveries.len(), 1);
}

async fn a_sender_that_does_not_respond_loses_its_messages(world: World) {
    let [_] = world.add_agents().await;
    add(&world, webhook("all", &["stack.created"])).await;
    world.add_stack("a").await;
    let first = world.store.acquire_deliveries(acquire("one", at(1))).await.unwrap();
    let second = world.store.acquire_deliveries(acquire("two", at(62))).await.unwrap();
    assert_eq!(ids(&first), ids(&second));
    let late = attempt(&first, "one", AttemptOutcome::Delivered);
    assert!(!world.store.record_delivery_attempt(late).await.unwrap(), "the sender has lost the message");
    assert!(world.store.record_delivery_attempt(attempt(&second, "two", AttemptOutcome::Delivered)).await.unwrap());
}

fn attempt(acquired: &AcquiredDeliveries, sender: &str, outcome: AttemptOutcome) -> DeliveryAttempt {
    let delivery = acquired.deliveries[0].delivery.id;
    let error = (outcome != AttemptOutcome::Delivered).then(|| "refused".to_owned());
    DeliveryAttempt { delivery, sender: sender.to_owned(), ended_at: at(70), outcome, error }
}

async fn the_history_shows_retries_and_abandoned_messages(world: World) {
    let [_] = world.add_agents().await;
    let hook = add(&world, webhook("all", &["stack.created"])).await;
    world.add_stack("a").await;
    let acquired = world.store.acquire_deliveries(acquire("one", at(1))).await.unwrap();
    let again = attempt(&acquired, "one", AttemptOutcome::RetryAt(at(100)));
    world.store.record_delivery_attempt(again).await.unwrap();
    let history = || world.store.list_deliveries(DeliveryFilter { webhook: hook, status: None, offset: 0, page: ALL });
    let waiting = history().await.unwrap().remove(0);
    assert_eq!((waiting.status.as_str(), waiting.attempts, waiting.next_retry_at), ("failed", 1, Some(at(100))));
    assert_eq!(waiting.last_error.as_deref(), Some("refused"));
    assert_eq!(ids(&world.store.acquire_deliveries(acquire("one", at(99))).await.unwrap()), []);
    let acquired = world.store.acquire_deliveries(acquire("one", at(100))).await.unwrap();
    world.store.record_delivery_attempt(attempt(&acquired, "one", AttemptOutcome::Abandoned)).await.unwrap();
    let dead = history().await.unwrap().remove(0);
    assert_eq!((dead.status.as_str(), dead.attempts, dead.completed_at), ("dead", 2, Some(at(70))));
    let rest = world.store.acquire_deliveries(acquire("one", at(9_999))).await.unwrap();
    assert_eq!((ids(&rest), rest.next_at), (vec![], None));
    world.store.queue_test_delivery(write_context(), hook).await.unwrap();
    assert_eq!(world.store.acquire_deliveries(acquire("one", at(1))).await.unwrap().deliveries.len(), 1);
    world.store.delete_webhook(write_context(), hook).await.unwrap();
    assert!(history().await.is_err());
}

async fn agents_acquire_messages_for_their_labels(world: World) {
    let [north, south] = world.add_agents().await;
    world.label_agent(north, "north").await;
    let mut for_north = webhook("north", &["stack.created"]);
    for_north.public.target_labels = Some(vec!["north".to_owned()]);
    add(&world, for_north).await;
    world.add_stack("a").await;
    assert_eq!(ids(&world.store.acquire_deliveries(acquire("broker", at(1))).await.unwrap()), []);
    let acquired = |agent: AgentId| world.store.acquire_deliveries_for_agent(agent, acquire(&agent.to_string(), at(1)));
    assert_eq!(ids(&acquired(south).await.unwrap()), []);
    let taken = acquired(north).await.unwrap();
    assert_eq!(taken.deliveries.len(), 1);
    let id = ids(&taken)[0];
    assert!(world.store.get_acquired_delivery(south, id).await.is_err());
    assert_eq!(world.store.get_acquired_delivery(north, id).await.unwrap().id, id);
}

async fn a_silent_agent_is_marked_offline_once_until_its_next_heartbeat(world: World) {
    let [silent, healthy, inactive, never] = world.add_agents().await;
    for (agent, status) in [
        (silent, AgentStatus::Active),
        (healthy, AgentStatus::Active),
        (inactive, AgentStatus::Inactive),
        (never, AgentStatus::Active),
    ] {
        let changes = UpdateAgentRequest { status: Some(status), ..Default::default() };
        world.store.update_agent(write_context(), agent, changes).await.unwrap();
    }
    let hook = add(&world, webhook("all", &["agent.offline"])).await;
    for (agent, second) in [(silent, 10), (healthy, 50), (inactive, 10)] {
        world.send_heartbeat(agent, second).await;
    }
    let mark = async |second| world.store.mark_agents_offline(write_context(), at(second), 10).await.unwrap();
    assert_eq!(mark(10).await, 0, "its last heartbeat is exactly that old");
    assert_eq!(mark(20).await, 1);
    let acquired = world.store.acquire_deliveries(acquire("one", at(1))).await.unwrap();
    let data = &acquired.deliveries[0].delivery.payload["data"];
    assert_eq!((&data["agent_id"], &data["name"]), (&serde_json::json!(silent), &serde_json::json!("agent-0")));
    assert_eq!(mark(20).await, 0, "it is marked already");
    world.send_heartbeat(silent, 5).await;
    assert_eq!(mark(20).await, 0, "an older heartbeat does not reset the mark");
    world.send_heartbeat(silent, 30).await;
    assert_eq!(mark(20).await, 0);
    assert_eq!(mark(40).await, 1);
    world.send_heartbeat(silent, 41).await;
    assert_eq!(world.store.mark_agents_offline(write_context(), at(100), 1).await.unwrap(), 1, "at most the limit");
    assert_eq!(mark(100).await, 1);
    assert_eq!(queued(&world, hook).await, ["agent.offline"; 4]);
    world.send_heartbeat(silent, 200).await;
    world.store.delete_agent(write_context(), silent).await.unwrap();
    assert_eq!(mark(300).await, 0);
}

async fn a_long_queue_of_one_subscription_does_not_delay_another(world: World) {
    const QUEUED: usize = 1_001;
    let [agent] = world.add_agents().await;
    world.label_agent(agent, "edge").await;
    let labelled = |name: &str, label: &str| {
        let mut webhook = webhook(name, &["stack.*"]);
        webhook.public.target_labels = Some(vec![label.to_owned()]);
        webhook
    };
    for (full, short) in [
        (webhook("full", &["stack.*"]), webhook("short", &["stack.*"])),
        (labelled("full of labels", "other"), labelled("short of labels", "edge")),
    ] {
        let is_labelled = short.public.target_labels.is_some();
        let (full, short) = (add(&world, full).await, add(&world, short).await);
        for _ in 0..QUEUED {
            world.store.queue_test_delivery(write_context(), full).await.unwrap();
        }
        world.store.queue_test_delivery(write_context(), short).await.unwrap();
        let request = AcquireDeliveries { limit: 4, limit_each: 3, ..acquire("one", at(1)) };
        let acquired = match is_labelled {
            false => world.store.acquire_deliveries(request).await.unwrap(),
            true => world.store.acquire_deliveries_for_agent(agent, request).await.unwrap(),
        };
        let of = |id| acquired.deliveries.iter().filter(|acquired| acquired.webhook.public.id == id).count();
        assert_eq!((of(short), of(full)), (1, if is_labelled { 0 } else { 3 }));
        if !is_labelled {
            let busy = BTreeSet::from([full]);
            let request = AcquireDeliveries { busy, ..acquire("one", at(2)) };
            assert!(ids(&world.store.acquire_deliveries(request).await.unwrap()).is_empty());
        }
        world.store.delete_webhook(write_context(), full).await.unwrap();
        world.store.delete_webhook(write_context(), short).await.unwrap();
    }
}
