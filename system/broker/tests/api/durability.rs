//! Restarts of the broker, and database files that are rejected.

use rusqlite::Connection;
use sindri_broker::{SqliteError, SqliteStore};

use crate::support::{Api, counting_entropy};

#[tokio::test]
async fn a_restart_keeps_the_state_and_sequences_continue() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    let entropy = counting_entropy();
    let (agent, stack, first, marker);
    {
        let api = Api::open(&path, entropy.clone()).await;
        let generator = api.create_generator("shop").await;
        agent = api.create_agent("east", &[&generator.0]).await;
        stack = api.create_stack("web", &generator.0).await;
        api.target(&agent.0, &stack).await;
        first = api.submit(&stack, false).await;
        assert_eq!(api.poll(&agent).await, std::slice::from_ref(&first));
        api.untarget(&agent.0, &stack).await;
        marker = api.poll(&agent).await;
    }
    let api = Api::open(&path, entropy).await;
    assert_eq!(api.poll(&agent).await, marker, "the removal is lost");
    let again = api.submit(&stack, false).await;
    assert_eq!(again["yaml_checksum"], first["yaml_checksum"]);
    assert!(again["sequence_id"].as_i64() > marker[0]["sequence_id"].as_i64());
}

#[tokio::test]
async fn the_administrators_key_is_set_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    let admin = Api::open(&path, counting_entropy()).await.admin;
    let store = SqliteStore::open(&path, None).unwrap();
    let broker = sindri_broker::Broker::start(store, crate::support::fixed_clock(), counting_entropy()).await.unwrap();
    assert!(broker.has_admin_key().await.unwrap());
    let intruder = sindri_model::Pak::generate(&counting_entropy());
    assert!(!broker.create_admin_key(&intruder).await.unwrap());
    drop(broker);
    let api = Api::open(&path, counting_entropy()).await;
    api.get(&admin, "/agents").await.expect_status(200);
    api.get(&intruder.reveal(), "/agents").await.expect_status(401);
}

#[test]
fn a_file_of_a_newer_broker_or_another_program_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    drop(SqliteStore::open(&path("newer"), None).unwrap());
    Connection::open(path("newer")).unwrap().pragma_update(None, "user_version", 999).unwrap();
    assert!(matches!(SqliteStore::open(&path("newer"), None), Err(SqliteError::Newer { found: 999, .. })));

    Connection::open(path("foreign")).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    assert!(matches!(SqliteStore::open(&path("foreign"), None), Err(SqliteError::Foreign)));

    std::fs::write(path("text"), "this is no database, it is a text that is long enough to be looked at").unwrap();
    assert!(matches!(SqliteStore::open(&path("text"), None), Err(SqliteError::Sqlite(_))));
}

#[test]
fn a_second_broker_cannot_open_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    let first = SqliteStore::open(&path, None).unwrap();
    assert!(matches!(SqliteStore::open(&path, None), Err(SqliteError::InUse)));
    drop(first);
    SqliteStore::open(&path, None).unwrap();
}

#[tokio::test]
async fn secrets_of_keys_are_not_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    let secret;
    {
        let api = Api::open(&path, counting_entropy()).await;
        secret = api.create_agent("east", &[]).await.1.rsplit('_').next().unwrap().to_owned();
    }
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.windows(4).any(|window| window == b"east"), "the file does not contain the agent");
    assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
}
