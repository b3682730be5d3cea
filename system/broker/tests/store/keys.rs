//! Keys.

use sindri_broker::{KeyHolder, KeyRecord};
use sindri_model::Pak;

use crate::support::{ALL, World, contracts, entropy, key, stamp};

contracts!(
    there_is_one_administrator,
    a_rotated_key_replaces_the_old_one,
    a_deleted_holder_has_no_key,
    keys_are_listed_without_their_secrets,
    the_secret_of_a_database_stays_the_same,
);

async fn there_is_one_administrator(world: World) {
    assert!(!world.store.has_admin().await.unwrap());
    assert!(world.store.create_admin(stamp(), key()).await.unwrap());
    assert!(!world.store.create_admin(stamp(), key()).await.unwrap());
    assert!(world.store.has_admin().await.unwrap());
}

async fn a_rotated_key_replaces_the_old_one(world: World) {
    let [agent] = world.with_agents().await;
    let (old, new) = (Pak::mint(&entropy()), Pak::mint(&entropy()));
    world.store.rotate_agent_key(stamp(), agent, KeyRecord::from(&old)).await.unwrap();
    world.store.rotate_agent_key(stamp(), agent, KeyRecord::from(&new)).await.unwrap();
    assert_eq!(world.store.keys(old.short().to_owned()).await.unwrap(), []);
    let known = world.store.keys(new.short().to_owned()).await.unwrap();
    assert_eq!(known, [(new.digest(), KeyHolder::Agent(agent))]);
}

async fn a_deleted_holder_has_no_key(world: World) {
    let [agent] = world.with_agents().await;
    let pak = Pak::mint(&entropy());
    world.store.rotate_generator_key(stamp(), world.generator, KeyRecord::from(&pak)).await.unwrap();
    world.store.delete_generator(stamp(), world.generator).await.unwrap();
    world.store.delete_agent(stamp(), agent).await.unwrap();
    assert_eq!(world.store.keys(pak.short().to_owned()).await.unwrap(), []);
    assert_eq!(world.store.paks(ALL).await.unwrap(), []);
}

async fn keys_are_listed_without_their_secrets(world: World) {
    let [_] = world.with_agents().await;
    world.store.create_admin(stamp(), key()).await.unwrap();
    let mut names: Vec<_> = world.store.paks(ALL).await.unwrap().into_iter().map(|pak| pak.name).collect();
    names.sort();
    assert_eq!(names, ["admin", "agent-0", "shop"]);
}

async fn the_secret_of_a_database_stays_the_same(world: World) {
    let first = world.store.secret(stamp()).await.unwrap();
    assert_eq!(first.len(), 32);
    assert_eq!(world.store.secret(stamp()).await.unwrap(), first);
}
