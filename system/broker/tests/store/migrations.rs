//! Databases of earlier brokers, of later ones, and of others.

use rusqlite::Connection;
use sindri_broker::{PostgresStore, SqliteStore, Store};
use sindri_model::wire::StackStatusReport;
use sindri_model::{AgentId, Epoch, StackId};

use crate::support::{ALL, fresh_schema, revision, run_sql, stamp, told};

/// Databases as each released schema has them: an agent with one stack to have, one to remove and one removed.
const SQLITE: [&str; 2] = [
    include_str!("../../../../fixtures/databases/sqlite-schema-1.sql"),
    include_str!("../../../../fixtures/databases/sqlite-schema-2.sql"),
];
const POSTGRES: [&str; 3] = [
    include_str!("../../../../fixtures/databases/postgres-schema-1.sql"),
    include_str!("../../../../fixtures/databases/postgres-schema-2.sql"),
    include_str!("../../../../fixtures/databases/postgres-schema-3.sql"),
];

fn id(digit: u8) -> String {
    format!("{digit}0000000-0000-4000-8000-000000000000")
}

#[tokio::test]
async fn a_sqlite_database_of_each_earlier_schema_keeps_everything() {
    for earlier in SQLITE {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db");
        Connection::open(&path).unwrap().execute_batch(earlier).unwrap();
        let store = SqliteStore::open(path.to_str().unwrap(), None).unwrap();
        keeps_everything(&store).await;
        drop(store);
        let again = SqliteStore::open(path.to_str().unwrap(), None).unwrap();
        assert_eq!(again.hand_out(id(1).parse().unwrap()).await.unwrap().objects.len(), 2);
    }
}

#[tokio::test]
async fn a_postgres_database_of_each_earlier_schema_keeps_everything() {
    for earlier in POSTGRES {
        let Some(url) = fresh_schema().await else { return };
        run_sql(&url, earlier).await;
        keeps_everything(&PostgresStore::open(&url, 2).await.unwrap()).await;
        let again = PostgresStore::open(&url, 2).await.unwrap();
        assert_eq!(again.hand_out(id(1).parse().unwrap()).await.unwrap().objects.len(), 2);
    }
}

async fn keeps_everything(store: &dyn Store) {
    let agent: AgentId = id(1).parse().unwrap();
    let before = store.hand_out(agent).await.unwrap();
    assert_eq!(before.epoch, Epoch(1));
    let expected = [(id(6).parse().unwrap(), false), (id(8).parse().unwrap(), true)];
    assert_eq!(told(&before), expected);
    assert_eq!(before.objects.iter().map(|desired| desired.is_done).collect::<Vec<_>>(), [true, false]);
    let events = store.events_of_agent(agent, ALL).await.unwrap();
    assert_eq!(events.iter().map(|event| event.status.as_str()).collect::<Vec<_>>(), ["SUCCESS", "FAILURE", "SUCCESS"]);
    let keys = store.keys("BRadmin1".to_owned()).await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(store.paks(ALL).await.unwrap().len(), 2);
    let stack: StackId = id(3).parse().unwrap();
    // What is new is there and works.
    let report = StackStatusReport { deployment_object_id: before.objects[0].object.id, conditions: Vec::new() };
    store.report_status(stamp(), agent, stack, report).await.unwrap();
    let reports = store.reports_of_stack(stack).await.unwrap();
    assert_eq!(reports.agents[0].said.sequence_id, Some(before.objects[0].object.sequence_id));
    let next = store.append_revision(stamp(), revision(stack, "a: 1")).await.unwrap();
    assert_eq!(next.sequence_id.0, 10, "above everything that was ever given out");
}

#[test]
fn a_newer_sqlite_database_is_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db");
    drop(SqliteStore::open(path.to_str().unwrap(), None).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = SqliteStore::open(path.to_str().unwrap(), None).unwrap_err().to_string();
    assert!(refused.contains("schema version 99") && refused.contains("use a newer broker"), "{refused}");
}

#[test]
fn a_database_of_something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE agents (x)").unwrap();
    let refused = SqliteStore::open(path.to_str().unwrap(), None).unwrap_err().to_string();
    assert!(refused.contains("not one of Sindri"), "{refused}");
}

#[tokio::test]
async fn a_newer_postgres_database_is_refused_and_a_second_start_changes_nothing() {
    let Some(url) = fresh_schema().await else { return };
    let first = PostgresStore::open(&url, 2).await.unwrap();
    first.begin_epoch(stamp(), Epoch(1), "a test".to_owned()).await.unwrap();
    let second = PostgresStore::open(&url, 2).await.unwrap();
    assert_eq!(second.era().await.unwrap().epoch, Epoch(2));
    run_sql(&url, "UPDATE sindri_schema SET version = 99").await;
    let refused = PostgresStore::open(&url, 2).await.unwrap_err().to_string();
    assert!(refused.contains("schema version 99") && refused.contains("use a newer broker"), "{refused}");
}

#[tokio::test]
async fn brokers_that_start_at_once_on_an_empty_postgres_database_agree() {
    let Some(url) = fresh_schema().await else { return };
    let (one, two, three) =
        tokio::join!(PostgresStore::open(&url, 2), PostgresStore::open(&url, 2), PostgresStore::open(&url, 2));
    let secret = one.unwrap().secret(stamp()).await.unwrap();
    for other in [two, three] {
        assert_eq!(other.unwrap().secret(stamp()).await.unwrap(), secret);
    }
}
