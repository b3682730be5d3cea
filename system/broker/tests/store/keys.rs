//! Keys of the administrator, agents and generators.

use futures_util::future::join_all;
use sindri_broker::{KeyHolder, KeyRecord, StoreError, StoredKey};
use sindri_model::Pak;

use crate::support::{ALL, World, contracts, entropy, key, write_context};

/// Repetitions of a test whose outcome depends on the order of two transactions.
const ROUNDS: usize = 10;

contracts!(
    the_administrator_has_one_key,
    a_rotated_key_replaces_the_old_one,
    of_concurrent_rotations_one_wins_and_one_key_is_left,
    a_rotation_during_a_deletion_leaves_no_key,
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
    world.rotate_agent_key(agent, KeyRecord::from(&old)).await.unwrap();
    world.rotate_agent_key(agent, KeyRecord::from(&new)).await.unwrap();
    assert_eq!(world.store.find_keys(old.short().to_owned()).await.unwrap(), []);
    let known = world.store.find_keys(new.short().to_owned()).await.unwrap();
    assert_eq!(known, [StoredKey { digest: new.digest(), holder: KeyHolder::Agent(agent), is_active: true }]);
}

async fn of_concurrent_rotations_one_wins_and_one_key_is_left(world: World) {
    let [agent] = world.add_agents().await;
    let holder = KeyHolder::Agent(agent);
    for _ in 0..ROUNDS {
        let expected = world.store.list_keys_of_holder(holder).await.unwrap();
        let rotate = || world.store.rotate_agent_key(write_context(), agent, expected.clone(), key());
        let mut results = join_all([rotate(), rotate(), rotate()]).await;
        results.retain(|result| result.is_ok());
        assert_eq!(results.len(), 1);
        assert_eq!(world.store.list_keys_of_holder(holder).await.unwrap().len(), 1);
        let late = rotate().await;
        assert_eq!(late.unwrap_err(), StoreError::KeyChanged);
    }
}

async fn a_rotation_during_a_deletion_leaves_no_key(world: World) {
    let [_] = world.add_agents().await;
    for round in 0..ROUNDS {
        let agent = world.add_agent(&format!("late-{round}"), &[]).await.unwrap();
        let holder = KeyHolder::Agent(agent);
        let expected = world.store.list_keys_of_holder(holder).await.unwrap();
        let (rotated, deleted) = tokio::join!(
            world.store.rotate_agent_key(write_context(), agent, expected, key()),
            world.store.delete_agent(write_context(), agent)
        );
        assert!(matches!(rotated, Ok(_) | Err(StoreError::KeyChanged)), "{rotated:?}");
        assert_eq!(deleted, Ok(()));
        assert_eq!(world.store.list_keys_of_holder(holder).await.unwrap(), []);
        let after = world.store.rotate_agent_key(write_context(), agent, Vec::new(), key()).await;
        assert!(matches!(after, Err(StoreError::NotFound { .. })), "{after:?}");
    }
}

async fn a_deleted_holder_has_no_key(world: World) {
    let [agent] = world.add_agents().await;
    let pak = Pak::generate(&entropy());
    let expected = world.store.list_keys_of_holder(KeyHolder::Generator(world.generator)).await.unwrap();
    let key = KeyRecord::from(&pak);
    world.store.rotate_generator_key(write_context(), world.generator, expected, key).await.unwrap();
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
