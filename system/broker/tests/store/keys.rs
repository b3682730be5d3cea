//! Keys of the administrator, agents and generators.

use futures_util::future::join_all;
use jiff::Timestamp;
use sindri_broker::{
    AuditFilter, FailedLogin, KeyAccess, KeyHolder, KeyRecord, KeyRotation, LoginFailure, StoreError, StoredKey,
    WriteContext,
};
use sindri_model::wire::{Admin, AdminRole};
use sindri_model::{AdminId, Pak, PakDigest};

use crate::support::{ALL, World, at, contracts, entropy, key, write_context};

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
    with_a_grace_period_two_keys_are_valid_and_never_three,
    a_grace_period_does_not_extend_a_key,
    of_concurrent_rotations_with_a_grace_period_one_wins,
    an_administrator_with_a_lasting_key_stays,
    administrators_that_delete_each_other_leave_one,
    the_audit_log_names_administrators_also_after_their_deletion,
    failed_logins_are_entries_of_the_audit_log,
);

fn rotation(expected: &[PakDigest], key: KeyRecord) -> KeyRotation {
    KeyRotation { expected: expected.to_vec(), key, previous_until: None }
}

fn stored(pak: &Pak, holder: KeyHolder, expires_at: Option<Timestamp>) -> StoredKey {
    StoredKey { digest: pak.digest(), holder, access: KeyAccess::Full, expires_at }
}

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
    assert_eq!(known, [stored(&new, KeyHolder::Agent(agent), None)]);
}

async fn of_concurrent_rotations_one_wins_and_one_key_is_left(world: World) {
    let [agent] = world.add_agents().await;
    let holder = KeyHolder::Agent(agent);
    for _ in 0..ROUNDS {
        let expected = world.store.list_keys_of_holder(holder).await.unwrap();
        let rotate = || world.store.rotate_agent_key(write_context(), agent, rotation(&expected, key()));
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
            world.store.rotate_agent_key(write_context(), agent, rotation(&expected, key())),
            world.store.delete_agent(write_context(), agent)
        );
        assert!(matches!(rotated, Ok(_) | Err(StoreError::KeyChanged)), "{rotated:?}");
        assert_eq!(deleted, Ok(()));
        assert_eq!(world.store.list_keys_of_holder(holder).await.unwrap(), []);
        let after = world.store.rotate_agent_key(write_context(), agent, rotation(&[], key())).await;
        assert!(matches!(after, Err(StoreError::NotFound { .. })), "{after:?}");
    }
}

async fn a_deleted_holder_has_no_key(world: World) {
    let [agent] = world.add_agents().await;
    let pak = Pak::generate(&entropy());
    let expected = world.store.list_keys_of_holder(KeyHolder::Generator(world.generator)).await.unwrap();
    let key = KeyRecord::from(&pak);
    world.store.rotate_generator_key(write_context(), world.generator, rotation(&expected, key)).await.unwrap();
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

async fn with_a_grace_period_two_keys_are_valid_and_never_three(world: World) {
    let [agent] = world.add_agents().await;
    let holder = KeyHolder::Agent(agent);
    let paks: Vec<Pak> = (0..4).map(|_| Pak::generate(&entropy())).collect();
    world.rotate_agent_key(agent, KeyRecord::from(&paks[0])).await.unwrap();
    let rotate = async |pak: &Pak, end: i64| {
        let expected = world.store.list_keys_of_holder(holder).await.unwrap();
        assert_eq!(expected.len(), 1, "one key is current");
        let rotation = KeyRotation { previous_until: Some(at(end)), ..rotation(&expected, KeyRecord::from(pak)) };
        world.store.rotate_agent_key(write_context(), agent, rotation).await.unwrap();
    };
    let find = async |pak: &Pak| world.store.find_keys(pak.short().to_owned()).await.unwrap();
    rotate(&paks[1], 60).await;
    assert_eq!(find(&paks[0]).await, [stored(&paks[0], holder, Some(at(60)))]);
    assert_eq!(find(&paks[1]).await, [stored(&paks[1], holder, None)]);
    rotate(&paks[2], 30).await;
    assert_eq!(find(&paks[0]).await, [], "it was replaced twice");
    assert_eq!(find(&paks[1]).await, [stored(&paks[1], holder, Some(at(30)))]);
    // Without a grace period both keys end.
    world.rotate_agent_key(agent, KeyRecord::from(&paks[3])).await.unwrap();
    assert_eq!((find(&paks[1]).await, find(&paks[2]).await), (vec![], vec![]));
    assert_eq!(find(&paks[3]).await, [stored(&paks[3], holder, None)]);
}

async fn a_grace_period_does_not_extend_a_key(world: World) {
    let [agent] = world.add_agents().await;
    let (pak, holder) = (Pak::generate(&entropy()), KeyHolder::Agent(agent));
    world.rotate_agent_key(agent, KeyRecord { expires_at: Some(at(10)), ..KeyRecord::from(&pak) }).await.unwrap();
    let expected = world.store.list_keys_of_holder(holder).await.unwrap();
    let rotation = KeyRotation { previous_until: Some(at(60)), ..rotation(&expected, key()) };
    world.store.rotate_agent_key(write_context(), agent, rotation).await.unwrap();
    let found = world.store.find_keys(pak.short().to_owned()).await.unwrap();
    assert_eq!(found, [stored(&pak, holder, Some(at(10)))]);
}

async fn of_concurrent_rotations_with_a_grace_period_one_wins(world: World) {
    let [agent] = world.add_agents().await;
    let holder = KeyHolder::Agent(agent);
    for _ in 0..ROUNDS {
        let expected = world.store.list_keys_of_holder(holder).await.unwrap();
        let rotate = || {
            let rotation = KeyRotation { previous_until: Some(at(60)), ..rotation(&expected, key()) };
            world.store.rotate_agent_key(write_context(), agent, rotation)
        };
        let results = join_all([rotate(), rotate(), rotate()]).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(StoreError::KeyChanged))), "{results:?}");
        assert_eq!(world.store.list_keys_of_holder(holder).await.unwrap().len(), 1);
        let of_agent = world.store.list_keys(ALL).await.unwrap().into_iter().filter(|pak| pak.name == "agent-0");
        assert_eq!(of_agent.count(), 2);
    }
}

fn admin(name: &str, role: AdminRole) -> Admin {
    let id = AdminId::generate(&entropy());
    Admin { id, created_at: at(0), name: name.to_owned(), role, key_expires_at: None }
}

async fn an_administrator_with_a_lasting_key_stays(world: World) {
    let store = &world.store;
    store.create_admin_key(write_context(), key()).await.unwrap();
    let first = store.list_admins(ALL).await.unwrap()[0].id;
    let (reader, brief) = (admin("reader", AdminRole::Reader), admin("brief", AdminRole::Admin));
    store.create_admin(write_context(), reader.clone(), key()).await.unwrap();
    store.create_admin(write_context(), brief.clone(), KeyRecord { expires_at: Some(at(60)), ..key() }).await.unwrap();
    let names: Vec<_> = store.list_admins(ALL).await.unwrap();
    let names: Vec<_> = names.iter().map(|admin| (admin.name.as_str(), admin.role, admin.key_expires_at)).collect();
    let expected = [
        ("admin", AdminRole::Admin, None),
        ("brief", AdminRole::Admin, Some(at(60))),
        ("reader", AdminRole::Reader, None),
    ];
    assert_eq!(names, expected);
    assert_eq!(store.delete_admin(write_context(), first).await, Err(StoreError::LastAdmin));
    let rotate = async |admin: AdminId, key: KeyRecord| {
        let expected = store.list_keys_of_holder(KeyHolder::Admin(admin)).await.unwrap();
        store.rotate_admin_key(write_context(), admin, rotation(&expected, key)).await
    };
    let expiring = || KeyRecord { expires_at: Some(at(60)), ..key() };
    assert_eq!(rotate(first, expiring()).await, Err(StoreError::LastAdmin));
    rotate(reader.id, expiring()).await.unwrap();
    rotate(brief.id, key()).await.unwrap();
    rotate(first, expiring()).await.unwrap();
    store.delete_admin(write_context(), first).await.unwrap();
    assert_eq!(store.list_keys_of_holder(KeyHolder::Admin(first)).await.unwrap(), []);
    assert!(matches!(store.delete_admin(write_context(), first).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.delete_admin(write_context(), brief.id).await, Err(StoreError::LastAdmin));
    store.create_admin(write_context(), admin("admin", AdminRole::Admin), key()).await.unwrap();
    let again = store.create_admin(write_context(), admin("admin", AdminRole::Admin), key()).await;
    assert!(matches!(again, Err(StoreError::AlreadyExists { .. })), "{again:?}");
}

async fn administrators_that_delete_each_other_leave_one(world: World) {
    for round in 0..ROUNDS {
        let [one, two] = ["one", "two"].map(|name| admin(&format!("{name}-{round}"), AdminRole::Admin));
        for admin in [&one, &two] {
            world.store.create_admin(write_context(), admin.clone(), key()).await.unwrap();
        }
        let others = world.store.list_admins(ALL).await.unwrap();
        for other in others.iter().filter(|other| ![one.id, two.id].contains(&other.id)) {
            world.store.delete_admin(write_context(), other.id).await.unwrap();
        }
        let delete = |admin: AdminId| world.store.delete_admin(write_context(), admin);
        let results = <[_; 2]>::from(tokio::join!(delete(one.id), delete(two.id)));
        assert!(results.contains(&Ok(())) && results.contains(&Err(StoreError::LastAdmin)), "{results:?}");
        assert_eq!(world.store.list_admins(ALL).await.unwrap().len(), 1);
    }
}

async fn the_audit_log_names_administrators_also_after_their_deletion(world: World) {
    world.store.create_admin_key(write_context(), key()).await.unwrap();
    let anna = admin("anna", AdminRole::Admin);
    world.store.create_admin(write_context(), anna.clone(), key()).await.unwrap();
    let by_anna = WriteContext { actor: Some(KeyHolder::Admin(anna.id)), ..write_context() };
    world.store.create_admin(by_anna, admin("ben", AdminRole::Reader), key()).await.unwrap();
    world.store.delete_admin(write_context(), anna.id).await.unwrap();
    let filter = AuditFilter { actor_id: Some(anna.id.to_string()), limit: 10, ..AuditFilter::default() };
    let (logs, _) = world.store.list_audit_log(filter).await.unwrap();
    let found: Vec<_> = logs.iter().map(|log| (log.action.as_str(), log.actor_name.as_deref())).collect();
    assert_eq!(found, [("admin.created", Some("anna"))]);
}

async fn failed_logins_are_entries_of_the_audit_log(world: World) {
    let login = |prefix: Option<&str>, reason, unrecorded| FailedLogin {
        time: at(5),
        peer: Some("192.0.2.7".parse().unwrap()),
        key_prefix: prefix.map(str::to_owned),
        reason,
        unrecorded,
    };
    let logins = vec![login(Some("BRabcdef"), LoginFailure::Unknown, 0), login(None, LoginFailure::Malformed, 3)];
    world.store.record_failed_logins(write_context(), logins).await.unwrap();
    let filter = AuditFilter { action: Some("login.failed".to_owned()), limit: 10, ..AuditFilter::default() };
    let (logs, _) = world.store.list_audit_log(filter).await.unwrap();
    let details: Vec<_> = logs.iter().map(|log| log.details.clone().unwrap().to_string()).collect();
    let expected = [
        r#"{"key_prefix":null,"reason":"malformed_key","unrecorded":3}"#,
        r#"{"key_prefix":"BRabcdef","reason":"unknown_key","unrecorded":0}"#,
    ];
    assert_eq!(details, expected);
    assert_eq!((logs[0].timestamp, logs[0].ip_address.as_deref()), (at(5), Some("192.0.2.7")));
}
