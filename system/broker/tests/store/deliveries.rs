//! Messages to subscribers: queued with what they tell of, sent by one at a time.

use jiff::Timestamp;
use sindri_broker::{Claim, Claimed, DeliveryFilter, NextStep, SealedParts, Settlement, WebhookRecord};
use sindri_model::wire::{AgentStatus, EventStatus, UpdateAgentRequest, WebhookFilters, WebhookResponse};
use sindri_model::{AgentId, DeliveryId, WebhookId};

use crate::support::{ALL, World, at, contracts, entropy, seconds, stamp};

contracts!(
    what_is_wanted_is_queued_with_what_it_tells_of,
    filters_and_switches_narrow_what_is_queued,
    a_message_is_taken_by_one_sender_at_a_time,
    a_sender_that_vanishes_loses_its_hold,
    a_message_ends_as_success_or_dead_and_history_says_so,
    agents_send_what_is_for_their_labels,
    an_agent_that_falls_silent_is_announced_once_until_it_is_back,
);

pub fn webhook(name: &str, events: &[&str]) -> WebhookRecord {
    let shown = WebhookResponse {
        id: WebhookId::mint(&entropy()),
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
    WebhookRecord { shown, sealed: SealedParts { url: vec![1], auth_header: None, signing_secret: vec![2] } }
}

pub fn claim(by: &str, at: Timestamp) -> Claim {
    Claim { by: by.to_owned(), at, until: at + seconds(60), limit: 10 }
}

pub async fn add(world: &World, webhook: WebhookRecord) -> WebhookId {
    let id = webhook.shown.id;
    world.store.create_webhook(stamp(), webhook).await.unwrap();
    id
}

pub async fn queued(world: &World, webhook: WebhookId) -> Vec<String> {
    let filter = DeliveryFilter { webhook, status: None, offset: 0, page: ALL };
    world.store.deliveries(filter).await.unwrap().into_iter().rev().map(|delivery| delivery.event_type).collect()
}

fn ids(claimed: &Claimed) -> Vec<DeliveryId> {
    claimed.deliveries.iter().map(|claimed| claimed.delivery.id).collect()
}

async fn what_is_wanted_is_queued_with_what_it_tells_of(world: World) {
    let [agent] = world.with_agents().await;
    let all = add(&world, webhook("all", &["*"])).await;
    let some = add(&world, webhook("some", &["deployment.*"])).await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await;
    world.poll(agent).await;
    world.report(agent, revision.id, EventStatus::Success).await.unwrap();
    world.report(agent, revision.id, EventStatus::Failure).await.unwrap();
    world.store.delete_stack(stamp(), stack).await.unwrap();
    let marker = world.only_removal(agent).await;
    world.report(agent, marker, EventStatus::Success).await.unwrap();
    let deployments = ["deployment.created", "deployment.applied", "deployment.failed", "deployment.deleted"];
    assert_eq!(queued(&world, some).await, deployments);
    let mut everything = deployments.to_vec();
    everything.insert(0, "stack.created");
    everything.insert(4, "stack.deleted");
    assert_eq!(queued(&world, all).await, everything);
    let failed = world.store.create_stack(stamp(), crate::support::stack("", world.generator)).await;
    assert!(failed.is_ok());
    let before = queued(&world, all).await.len();
    assert!(world.store.create_stack(stamp(), crate::support::stack("", world.generator)).await.is_err());
    assert_eq!(queued(&world, all).await.len(), before, "nothing is announced that was not committed");
}

async fn filters_and_switches_narrow_what_is_queued(world: World) {
    let [one, two] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    let mut of_one = webhook("one", &["deployment.applied"]);
    of_one.shown.filters = Some(WebhookFilters { agent_id: Some(one), stack_id: Some(stack) });
    let mut off = webhook("off", &["*"]);
    off.shown.enabled = false;
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

async fn a_message_is_taken_by_one_sender_at_a_time(world: World) {
    let [_] = world.with_agents().await;
    add(&world, webhook("all", &["stack.created"])).await;
    for name in ["a", "b", "c"] {
        world.add_stack(name).await;
    }
    let first = world.store.claim_deliveries(Claim { limit: 2, ..claim("one", at(1)) }).await.unwrap();
    let second = world.store.claim_deliveries(claim("two", at(1))).await.unwrap();
    assert_eq!((first.deliveries.len(), second.deliveries.len()), (2, 1));
    assert!(ids(&second).iter().all(|id| !ids(&first).contains(id)));
    assert_eq!(second.next_at, Some(at(61)), "when the first hold ends");
    assert_eq!(first.deliveries[0].webhook.sealed.url, [1]);
    assert_eq!(ids(&world.store.claim_deliveries(claim("three", at(2))).await.unwrap()), []);
}

async fn a_sender_that_vanishes_loses_its_hold(world: World) {
    let [_] = world.with_agents().await;
    add(&world, webhook("all", &["stack.created"])).await;
    world.add_stack("a").await;
    let first = world.store.claim_deliveries(claim("one", at(1))).await.unwrap();
    let second = world.store.claim_deliveries(claim("two", at(62))).await.unwrap();
    assert_eq!(ids(&first), ids(&second));
    let late = settlement(&first, "one", NextStep::Done);
    assert!(!world.store.settle_delivery(late).await.unwrap(), "it is no longer its to settle");
    assert!(world.store.settle_delivery(settlement(&second, "two", NextStep::Done)).await.unwrap());
}

fn settlement(claimed: &Claimed, by: &str, next: NextStep) -> Settlement {
    let delivery = claimed.deliveries[0].delivery.id;
    let error = (next != NextStep::Done).then(|| "refused".to_owned());
    Settlement { delivery, by: by.to_owned(), at: at(70), next, error }
}

async fn a_message_ends_as_success_or_dead_and_history_says_so(world: World) {
    let [_] = world.with_agents().await;
    let hook = add(&world, webhook("all", &["stack.created"])).await;
    world.add_stack("a").await;
    let claimed = world.store.claim_deliveries(claim("one", at(1))).await.unwrap();
    let again = settlement(&claimed, "one", NextStep::RetryAt(at(100)));
    world.store.settle_delivery(again).await.unwrap();
    let history = || world.store.deliveries(DeliveryFilter { webhook: hook, status: None, offset: 0, page: ALL });
    let waiting = history().await.unwrap().remove(0);
    assert_eq!((waiting.status.as_str(), waiting.attempts, waiting.next_retry_at), ("failed", 1, Some(at(100))));
    assert_eq!(waiting.last_error.as_deref(), Some("refused"));
    assert_eq!(ids(&world.store.claim_deliveries(claim("one", at(99))).await.unwrap()), []);
    let claimed = world.store.claim_deliveries(claim("one", at(100))).await.unwrap();
    world.store.settle_delivery(settlement(&claimed, "one", NextStep::Dead)).await.unwrap();
    let dead = history().await.unwrap().remove(0);
    assert_eq!((dead.status.as_str(), dead.attempts, dead.completed_at), ("dead", 2, Some(at(70))));
    let rest = world.store.claim_deliveries(claim("one", at(9_999))).await.unwrap();
    assert_eq!((ids(&rest), rest.next_at), (vec![], None));
    world.store.test_webhook(stamp(), hook).await.unwrap();
    assert_eq!(world.store.claim_deliveries(claim("one", at(1))).await.unwrap().deliveries.len(), 1);
    world.store.delete_webhook(stamp(), hook).await.unwrap();
    assert!(history().await.is_err());
}

async fn agents_send_what_is_for_their_labels(world: World) {
    let [north, south] = world.with_agents().await;
    world.label_agent(north, "north").await;
    let mut for_north = webhook("north", &["stack.created"]);
    for_north.shown.target_labels = Some(vec!["north".to_owned()]);
    add(&world, for_north).await;
    world.add_stack("a").await;
    assert_eq!(ids(&world.store.claim_deliveries(claim("broker", at(1))).await.unwrap()), []);
    let claimed = |agent: AgentId| world.store.claim_deliveries_of_agent(agent, claim(&agent.to_string(), at(1)));
    assert_eq!(ids(&claimed(south).await.unwrap()), []);
    let taken = claimed(north).await.unwrap();
    assert_eq!(taken.deliveries.len(), 1);
    let id = ids(&taken)[0];
    assert!(world.store.claimed_delivery(south, id).await.is_err());
    assert_eq!(world.store.claimed_delivery(north, id).await.unwrap().id, id);
}

async fn an_agent_that_falls_silent_is_announced_once_until_it_is_back(world: World) {
    let [silent, well, resting, never] = world.with_agents().await;
    for (agent, status) in [
        (silent, AgentStatus::Active),
        (well, AgentStatus::Active),
        (resting, AgentStatus::Inactive),
        (never, AgentStatus::Active),
    ] {
        let changes = UpdateAgentRequest { status: Some(status), ..Default::default() };
        world.store.update_agent(stamp(), agent, changes).await.unwrap();
    }
    let hook = add(&world, webhook("all", &["agent.offline"])).await;
    for (agent, second) in [(silent, 10), (well, 50), (resting, 10)] {
        world.beat(agent, second).await;
    }
    let look = async |second| world.store.note_offline(stamp(), at(second), 10).await.unwrap();
    assert_eq!(look(10).await, 0, "not longer than that");
    assert_eq!(look(20).await, 1);
    let claimed = world.store.claim_deliveries(claim("one", at(1))).await.unwrap();
    let data = &claimed.deliveries[0].delivery.payload["data"];
    assert_eq!((&data["agent_id"], &data["name"]), (&serde_json::json!(silent), &serde_json::json!("agent-0")));
    assert_eq!(look(20).await, 0, "it was told");
    world.beat(silent, 5).await;
    assert_eq!(look(20).await, 0, "an older heartbeat brings nobody back");
    world.beat(silent, 30).await;
    assert_eq!(look(20).await, 0);
    assert_eq!(look(40).await, 1);
    world.beat(silent, 41).await;
    assert_eq!(world.store.note_offline(stamp(), at(100), 1).await.unwrap(), 1, "as many as may be");
    assert_eq!(look(100).await, 1);
    assert_eq!(queued(&world, hook).await, ["agent.offline"; 4]);
    world.beat(silent, 200).await;
    world.store.delete_agent(stamp(), silent).await.unwrap();
    assert_eq!(look(300).await, 0);
}
