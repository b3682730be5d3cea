//! Keys of the administrator, agents and generators.

use sindri_broker::{KeyHolder, KeyRecord};
use sindri_model::Pak;

use crate::support::{ALL, World, contracts, entropy, key, write_context};

contracts!(
    the_administrator_has_one_key,
    a_rotated_key_replaces_the_old_one,
    a_deleted_holder_has_no_key,
    keys_are_listed_without_their_secrets,
    the_secret_of_a_database_stays_the_same,
);

async fn the_administrator_has_one_key(world: World) {
    assert!(!world.store.has_admin_key().await.unwrap());
    assert!(world.store.create_admin_key(write_context(), key()).await.unwrap());
    assert!(!world.store.create_admin_key(write_context(), key()).await.unwrap());
    assert!(world.store.has_admin_key().await.unwrap());
}

async fn a_rotated_key_replaces_the_old_one(world: World) {
    let [agent] = world.add_agents().await;
    let (old, new) = (Pak::generate(&entropy()), Pak::generate(&entropy()));
    world.store.rotate_agent_key(write_context(), agent, KeyRecord::from(&old)).await.unwrap();
    world.store.rotate_agent_key(write_context(), agent, KeyRecord::from(&new)).await.unwrap();
    assert_eq!(world.store.find_keys(old.short().to_owned()).await.unwrap(), []);
    let known = world.store.find_keys(new.short().to_owned()).await.unwrap();
    assert_eq!(known, [(new.digest(), KeyHolder::Agent(agent))]);
}

async fn a_deleted_holder_has_no_key(world: World) {
    let [agent] = world.add_agents().await;
    let pak = Pak::generate(&entropy());
    world.store.rotate_generator_key(write_context(), world.generator, KeyRecord::from(&pak)).await.unwrap();
    world.store.delete_generator(write_context(), world.generator).await.unwrap();
    world.store.delete_agent(write_context(), agent).await.unwrap();
    assert_eq!(world.store.find_keys(pak.short().to_owned()).await.unwrap(), []);
    assert_eq!(world.store.list_keys(ALL).await.unwrap(), []);
}

async fn keys_are_listed_without_their_secrets(world: World) {
    let [_] = world.add_agents().await;
    world.store.create_admin_key(write_context(), key()).await.unwrap();
    let mut names: Vec<_> = world.store.list_keys(ALL).await.unwrap().into_iter().map(|pak| pak.name).collect();
    names.sort();
    assert_eq!(names, ["admin", "agent-0", "shop"]);
}

async fn the_secret_of_a_database_stays_the_same(world: World) {
    let first = world.store.get_or_create_secret(write_context()).await.unwrap();
    assert_eq!(first.len(), 32);
    assert_eq!(world.store.get_or_create_secret(write_context()).await.unwrap(), first);
}
