//! Databases of earlier brokers, of later brokers, and of other programs.

use rusqlite::Connection;
use sindri_broker::{KeyAccess, KeyHolder, PostgresStore, SqliteStore, Store, StoredKey};
use sindri_model::wire::{AdminRole, StackStatusReport};
use sindri_model::{AgentId, Epoch, PakDigest, StackId};

use crate::support::{ALL, fresh_schema, revision, revision_ids, run_sql, write_context};

/// A database of each released schema: an agent with one stack in its target state, one removal, and one removed stack.
const SQLITE: [&str; 3] = [
    include_str!("../../../../fixtures/databases/sqlite-schema-1.sql"),
    include_str!("../../../../fixtures/databases/sqlite-schema-2.sql"),
    include_str!("../../../../fixtures/databases/sqlite-schema-3.sql"),
];
const POSTGRES: [&str; 4] = [
    include_str!("../../../../fixtures/databases/postgres-schema-1.sql"),
    include_str!("../../../../fixtures/databases/postgres-schema-2.sql"),
    include_str!("../../../../fixtures/databases/postgres-schema-3.sql"),
    include_str!("../../../../fixtures/databases/postgres-schema-4.sql"),
];

fn id(digit: u8) -> String {
    format!("{digit}0000000-0000-4000-8000-000000000000")
}

#[tokio::test]
async fn a_sqlite_database_of_each_earlier_schema_keeps_its_data() {
    for earlier in SQLITE {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db");
        Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
        let store = SqliteStore::open(path.to_str().unwrap(), None).unwrap();
        check_migrated(&store).await;
        drop(store);
        let again = SqliteStore::open(path.to_str().unwrap(), None).unwrap();
        assert_eq!(again.deliver_target_state(id(1).parse().unwrap()).await.unwrap().revisions.len(), 2);
    }
}

#[tokio::test]
async fn a_postgres_database_of_each_earlier_schema_keeps_its_data() {
    for earlier in POSTGRES {
        let Some(url) = fresh_schema().await else { return };
        run_sql(&url, earlier).await;
        check_migrated(&PostgresStore::open(&url, 2).await.unwrap()).await;
        let again = PostgresStore::open(&url, 2).await.unwrap();
        assert_eq!(again.deliver_target_state(id(1).parse().unwrap()).await.unwrap().revisions.len(), 2);
    }
}

async fn check_migrated(store: &dyn Store) {
    let agent: AgentId = id(1).parse().unwrap();
    let before = store.deliver_target_state(agent).await.unwrap();
    assert_eq!(before.epoch, Epoch(1));
    let expected = [(id(6).parse().unwrap(), false), (id(8).parse().unwrap(), true)];
    assert_eq!(revision_ids(&before), expected);
    assert_eq!(before.revisions.iter().map(|target| target.is_applied).collect::<Vec<_>>(), [true, false]);
    let events = store.list_events_of_agent(agent, ALL).await.unwrap();
    assert_eq!(events.iter().map(|event| event.status.as_str()).collect::<Vec<_>>(), ["SUCCESS", "FAILURE", "SUCCESS"]);
    let keys = store.find_keys("BRadmin1".to_owned()).await.unwrap();
    let admins = store.list_admins(ALL).await.unwrap();
    assert_eq!(
        admins.iter().map(|admin| (admin.name.as_str(), admin.role)).collect::<Vec<_>>(),
        [("admin", AdminRole::Admin)]
    );
    let digest = PakDigest("a".to_owned());
    let holder = KeyHolder::Admin(admins[0].id);
    let admin_key = StoredKey { digest: digest.clone(), holder, access: KeyAccess::Full, expires_at: None };
    assert_eq!(keys, [admin_key], "the administrator's key still works");
    assert!(store.has_admin_key().await.unwrap());
    assert_eq!(store.list_keys_of_holder(holder).await.unwrap(), [digest]);
    assert_eq!(store.list_keys(ALL).await.unwrap().len(), 2);
    let stack: StackId = id(3).parse().unwrap();
    // The new tables exist and work.
    let report = StackStatusReport { deployment_object_id: before.revisions[0].revision.id, conditions: Vec::new() };
    store.record_stack_status(write_context(), agent, stack, report).await.unwrap();
    let reports = store.get_stack_reports(stack, ALL).await.unwrap();
    assert_eq!(reports.agents[0].sequence_id, Some(before.revisions[0].revision.sequence_id));
    let next = store.append_revision(write_context(), revision(stack, "a: 1")).await.unwrap();
    assert_eq!(next.sequence_id.0, 10, "above every sequence that was ever issued");
    let history = store.list_history(stack, ALL).await.unwrap();
    let numbers: Vec<i64> = history.iter().map(|revision| revision.number).collect();
    let count = i64::try_from(numbers.len()).unwrap();
    assert!(count >= 2 && numbers == (1..=count).rev().collect::<Vec<_>>(), "{numbers:?}");
}

#[test]
fn a_newer_sqlite_database_is_rejected_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db");
    drop(SqliteStore::open(path.to_str().unwrap(), None).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let rejected = SqliteStore::open(path.to_str().unwrap(), None).unwrap_err().to_string();
    assert!(rejected.contains("schema version 99") && rejected.contains("use a newer broker"), "{rejected}");
}

#[test]
fn a_database_of_another_program_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE agents (x)").unwrap();
    let rejected = SqliteStore::open(path.to_str().unwrap(), None).unwrap_err().to_string();
    assert!(rejected.contains("not one of Sindri"), "{rejected}");
}

#[tokio::test]
async fn a_newer_postgres_database_is_rejected_and_a_second_start_changes_nothing() {
    let Some(url) = fresh_schema().await else { return };
    let first = PostgresStore::open(&url, 2).await.unwrap();
    first.begin_epoch(write_context(), Epoch(1), "a test".to_owned()).await.unwrap();
    let second = PostgresStore::open(&url, 2).await.unwrap();
    assert_eq!(second.get_position().await.unwrap().epoch, Epoch(2));
    run_sql(&url, "UPDATE sindri_schema SET version = 99").await;
    let rejected = PostgresStore::open(&url, 2).await.unwrap_err().to_string();
    assert!(rejected.contains("schema version 99") && rejected.contains("use a newer broker"), "{rejected}");
}

#[tokio::test]
async fn brokers_that_start_together_on_an_empty_postgres_database_share_its_secret() {
    let Some(url) = fresh_schema().await else { return };
    let (one, two, three) =
        tokio::join!(PostgresStore::open(&url, 2), PostgresStore::open(&url, 2), PostgresStore::open(&url, 2));
    let secret = one.unwrap().get_or_create_secret(write_context()).await.unwrap();
    for other in [two, three] {
        assert_eq!(other.unwrap().get_or_create_secret(write_context()).await.unwrap(), secret);
    }
}
