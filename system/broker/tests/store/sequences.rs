//! Numbers, epochs and requests that are sent again.

use sindri_broker::{Change, Noun, Page, StoreError};
use sindri_model::wire::EventStatus;
use sindri_model::{Epoch, GeneratorId};

use crate::support::{ALL, World, contracts, entropy, event, revision, stack, stamp, stamp_with_key};

contracts!(
    sequences_increase_and_lists_are_in_their_order,
    a_new_epoch_is_above_everything_before_it,
    a_request_sent_again_makes_nothing_new,
    a_key_that_made_something_else_is_refused,
    a_database_that_moved_is_noticed_once,
    news_names_what_changed_and_nothing_else,
    what_is_missing_or_there_already_is_named,
);

async fn sequences_increase_and_lists_are_in_their_order(world: World) {
    let [_] = world.with_agents().await;
    let (one, two) = (world.add_stack("one").await, world.add_stack("two").await);
    let mut submitted = Vec::new();
    for stack in [one, two, one, one, two] {
        submitted.push(world.submit(stack).await);
    }
    assert!(submitted.windows(2).all(|pair| pair[0].sequence_id < pair[1].sequence_id));
    let of_one: Vec<_> = submitted.iter().filter(|object| object.stack_id == one).cloned().collect();
    assert_eq!(world.store.revisions(one, ALL).await.unwrap(), of_one);
    let page = Page { after: Some(of_one[0].id.to_string()), limit: 1 };
    assert_eq!(world.store.revisions(one, page).await.unwrap(), of_one[1..2]);
    assert_eq!(world.store.revision(of_one[2].id).await.unwrap().object, of_one[2]);
}

async fn a_new_epoch_is_above_everything_before_it(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let old = world.submit(stack).await;
    let before = world.store.hand_out(agent).await.unwrap();
    let era = world.store.begin_epoch(stamp(), Epoch(1), "a test".to_owned()).await.unwrap();
    assert_eq!(era.epoch, Epoch(2));
    let again = world.store.begin_epoch(stamp(), Epoch(1), "the same".to_owned()).await.unwrap();
    assert_eq!(again.epoch, Epoch(2), "a second broker noticed the same");
    let after = world.store.hand_out(agent).await.unwrap();
    assert!(after.version > before.version);
    assert_eq!((after.epoch, after.objects[0].object.id), (Epoch(2), old.id));
    let new = world.submit(stack).await;
    assert_eq!((old.sequence_id.epoch(), new.sequence_id.epoch()), (Epoch(1), Epoch(2)));
    assert_eq!(world.store.era().await.unwrap().epoch, Epoch(2));
}

async fn a_request_sent_again_makes_nothing_new(world: World) {
    let [agent] = world.with_agents().await;
    let first = world.store.create_stack(stamp_with_key("s"), stack("web", world.generator)).await.unwrap();
    let second = world.store.create_stack(stamp_with_key("s"), stack("web", world.generator)).await.unwrap();
    assert_eq!(first.id, second.id);
    world.target(agent, first.id).await.unwrap();
    let one = world.store.append_revision(stamp_with_key("r"), revision(first.id, "a: 1")).await.unwrap();
    let two = world.store.append_revision(stamp_with_key("r"), revision(first.id, "a: 2")).await.unwrap();
    assert_eq!(one, two);
    world.poll(agent).await;
    let report = || world.store.record_event(stamp_with_key("e"), event(agent, one.id, EventStatus::Failure));
    assert_eq!(report().await.unwrap().id, report().await.unwrap().id);
    assert_eq!(world.store.events_of_agent(agent, ALL).await.unwrap().len(), 1);
}

async fn a_key_that_made_something_else_is_refused(world: World) {
    let [_] = world.with_agents().await;
    let made = world.store.create_stack(stamp_with_key("k"), stack("web", world.generator)).await.unwrap();
    let other = world.store.append_revision(stamp_with_key("k"), revision(made.id, "a: 1")).await;
    assert!(matches!(other, Err(StoreError::KeyReused(_))), "{other:?}");
    assert_eq!(world.store.revisions(made.id, ALL).await.unwrap(), []);
}

async fn a_database_that_moved_is_noticed_once(world: World) {
    let mut moved = Vec::new();
    for origin in ["a/1", "a/1", "a/2", "a/2"] {
        moved.push(world.store.settle_origin(origin.to_owned()).await.unwrap());
    }
    assert_eq!(moved, [false, false, true, false]);
}

async fn news_names_what_changed_and_nothing_else(world: World) {
    let [one, two] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(one, stack).await.unwrap();
    world.submit(stack).await;
    let latest = world.store.era().await.unwrap().latest;
    assert_eq!(world.store.news(latest).await.unwrap().changes, []);
    let submitted = world.submit(stack).await;
    let news = world.store.news(latest).await.unwrap();
    assert_eq!(news.changes, [Change::DesiredSet(one, submitted.sequence_id)]);
    assert_eq!(world.store.news(news.latest).await.unwrap().changes, []);
    world.store.rotate_agent_key(stamp(), two, crate::support::key()).await.unwrap();
    assert_eq!(world.store.news(news.latest).await.unwrap().changes, [Change::Keys]);
}

async fn what_is_missing_or_there_already_is_named(world: World) {
    let [agent] = world.with_agents().await;
    let there = world.add_agent("agent-0", &[]).await.unwrap_err();
    assert_eq!(there.to_string(), "agent agent-0 of cluster cluster exists already");
    let nobody = GeneratorId::mint(&entropy());
    let missing = world.add_agent("new", &[nobody]).await.unwrap_err();
    assert_eq!(missing, StoreError::MissingReference { noun: Noun::Generator, name: nobody.to_string() });
    assert_eq!(world.store.agents(ALL).await.unwrap().len(), 1, "what failed left nothing");
    let stack_of_nobody = world.store.create_stack(stamp(), stack("web", nobody)).await.unwrap_err();
    assert!(matches!(stack_of_nobody, StoreError::MissingReference { noun: Noun::Generator, .. }));
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    assert!(matches!(world.target(agent, stack).await, Err(StoreError::Duplicate { noun: Noun::Target, .. })));
    let stranger = world.add_agent("stranger", &[]).await.unwrap();
    assert!(matches!(world.target(stranger, stack).await, Err(StoreError::NotRegistered { .. })));
}
