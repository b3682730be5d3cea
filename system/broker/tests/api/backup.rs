//! Backup and restore of the SQLite database of a broker process, and rotation of the encryption key.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use serde_json::Value;
use sindri_model::Checksum;

use crate::database_startup::send;
use crate::process::{PROGRAM, error_line, ready, start_with, stop};
use crate::support::BUNDLE;

fn run(directory: &Path, arguments: &[&str]) -> Output {
    let database = format!("sqlite:{}", directory.join("sindri.db").display());
    Command::new(PROGRAM).args(arguments).args(["--log", "off", "--database-url", &database]).output().unwrap()
}

fn run_successfully(directory: &Path, arguments: &[&str]) -> String {
    let output = run(directory, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read_key(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("key")).unwrap()
}

fn call(address: &str, method: &str, path: &str, key: &str, body: &str) -> Value {
    let response = send(address, method, path, key, body);
    assert!(response.starts_with("HTTP/1.1 20"), "{response}");
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn submission(number: u64) -> String {
    serde_json::json!({"yaml_content": format!("{BUNDLE}data: {{n: \"{number}\"}}\n")}).to_string()
}

#[test]
fn a_backup_under_load_is_complete_and_its_restore_begins_a_new_epoch() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start_with(directory.path(), &[]);
    let (address, admin) = (ready(&mut lines, "http"), read_key(directory.path()));
    let created = call(&address, "POST", "/generators", &admin, r#"{"name": "shop"}"#);
    let generator = text(&created["generator"]["id"]);
    let agent = format!(r#"{{"name": "east", "cluster_name": "c", "generator_ids": ["{generator}"]}}"#);
    let agent = call(&address, "POST", "/agents", &admin, &agent);
    let (agent, agent_key) = (text(&agent["agent"]["id"]), text(&agent["initial_pak"]));
    let stack = format!(r#"{{"name": "web", "generator_id": "{generator}"}}"#);
    let stack = text(&call(&address, "POST", "/stacks", &admin, &stack)["id"]);
    let target = format!(r#"{{"agent_id": "{agent}", "stack_id": "{stack}"}}"#);
    call(&address, "POST", &format!("/agents/{agent}/targets"), &admin, &target);
    let revisions = format!("/stacks/{stack}/deployment-objects");
    let (is_done, acknowledged) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
    let submit = |worker: u64| {
        for number in 0.. {
            if is_done.load(Ordering::SeqCst) {
                break;
            }
            let submitted = call(&address, "POST", &revisions, &admin, &submission(worker * 1_000_000 + number));
            acknowledged.lock().unwrap().insert(submitted["sequence_id"].as_i64().unwrap());
        }
    };
    let backup = |name: &str| {
        let before = acknowledged.lock().unwrap().clone();
        let file = directory.path().join(name).display().to_string();
        let shown = run_successfully(directory.path(), &["backup", &file]);
        assert!(shown.contains("checked"), "{shown}");
        (file, before)
    };
    let ((first, _), (last, before_last)) = std::thread::scope(|scope| {
        (0..4).for_each(|worker| drop(scope.spawn(move || submit(worker))));
        while acknowledged.lock().unwrap().len() < 50 {
            std::thread::yield_now();
        }
        let taken = (backup("first"), backup("last"));
        is_done.store(true, Ordering::SeqCst);
        taken
    });
    let exists = error_line(&run(directory.path(), &["backup", &last]));
    assert!(exists.contains("a backup overwrites no file"), "{exists}");
    let running = error_line(&run(directory.path(), &["restore", &last, "--overwrite"]));
    assert!(running.contains("in use by another process"), "{running}");
    stop(process);
    let refused = error_line(&run(directory.path(), &["restore", &last]));
    assert!(refused.contains("--overwrite"), "{refused}");
    let restored = run_successfully(directory.path(), &["restore", &last, "--overwrite"]);
    assert!(restored.contains("epoch 2 begins"), "{restored}");

    let (process, mut lines) = start_with(directory.path(), &[]);
    let address = ready(&mut lines, "http");
    let listed = call(&address, "GET", &format!("{revisions}?limit=10000"), &admin, "");
    let listed = listed.as_array().unwrap();
    let sequences: Vec<i64> = listed.iter().map(|revision| revision["sequence_id"].as_i64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|one, next| one < next));
    for revision in listed {
        let content = revision["yaml_content"].as_str().unwrap();
        assert_eq!(Checksum::compute(content).as_str(), revision["yaml_checksum"]);
    }
    let kept: BTreeSet<i64> = sequences.iter().copied().collect();
    assert!(before_last.is_subset(&kept), "a revision that was acknowledged before the backup is lost");
    let response = send(&address, "GET", &format!("/agents/{agent}/target-state"), &agent_key, "");
    assert!(response.starts_with("HTTP/1.1 200") && response.contains("x-sindri-epoch: 2"), "{response}");
    let next = call(&address, "POST", &revisions, &admin, &submission(9_999_999))["sequence_id"].as_i64();
    assert!(next > acknowledged.lock().unwrap().last().copied(), "sequences never repeat or go back");
    stop(process);

    // The replaced database is at epoch 2: also an older backup is restored to a higher one.
    let restored = run_successfully(directory.path(), &["restore", &first, "--overwrite"]);
    assert!(restored.contains("epoch 3 begins"), "{restored}");
    assert!(directory.path().join("sindri.db.replaced").exists());
}

#[test]
fn after_a_shutdown_the_database_is_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start_with(directory.path(), &[]);
    let (address, admin) = (ready(&mut lines, "http"), read_key(directory.path()));
    call(&address, "POST", "/generators", &admin, r#"{"name": "shop"}"#);
    stop(process);
    assert!(!directory.path().join("sindri.db-wal").exists());
    let copy = directory.path().join("copy");
    std::fs::copy(directory.path().join("sindri.db"), &copy).unwrap();
    let count = |sql: &str| Connection::open(&copy).unwrap().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM generators"), 1);
}

#[test]
fn other_programs_read_the_database_of_a_running_broker_and_a_second_broker_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start_with(directory.path(), &[]);
    let (address, admin) = (ready(&mut lines, "http"), read_key(directory.path()));
    call(&address, "POST", "/generators", &admin, r#"{"name": "shop"}"#);
    let reader = Connection::open(directory.path().join("sindri.db")).unwrap();
    let transaction = reader.unchecked_transaction().unwrap();
    let count = || transaction.query_row("SELECT count(*) FROM generators", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 1);
    call(&address, "POST", "/generators", &admin, r#"{"name": "other"}"#);
    assert_eq!(count(), 1, "the reader's transaction sees one moment");
    assert!(error_line(&run(directory.path(), &["--listen", "127.0.0.1:0"])).contains("in use by another process"));
    drop(transaction);
    drop(reader);
    stop(process);
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let directory = tempfile::tempdir().unwrap();
    let (process, mut lines) = start_with(directory.path(), &[]);
    ready(&mut lines, "http");
    stop(process);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let restore = |name: &str| error_line(&run(directory.path(), &["restore", &file(name), "--overwrite"]));
    for (name, sql, reason) in [
        ("counter", "UPDATE meta SET value = 0 WHERE name = 'tick'", "higher sequence than the counter"),
        ("bundle", "UPDATE revisions SET yaml_content = 'b'", "does not have its checksum"),
        ("reference", "UPDATE stacks SET generator_id = 'gone'", "refers to a row that does not exist"),
    ] {
        run_successfully(directory.path(), &["backup", &file(name)]);
        let connection = Connection::open(file(name)).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let sum = Checksum::compute("a");
        let rows = format!(
            "INSERT INTO generators (id, created_at, updated_at, name, is_active, is_system) VALUES ('g', 1, 1, 'g', 1, 0);
             INSERT INTO stacks (id, created_at, updated_at, name, generator_id) VALUES ('s', 1, 1, 's', 'g');
             UPDATE meta SET value = 5 WHERE name = 'tick';
             INSERT INTO revisions (sequence, id, stack_id, yaml_content, yaml_checksum, submitted_at, is_deletion_marker)
               VALUES (5, 'r', 's', 'a', '{}', 1, 0)",
            sum.as_str()
        );
        connection.execute_batch(&format!("{rows}; {sql}")).unwrap();
        drop(connection);
        let line = restore(name);
        assert!(line.contains(reason) && line.contains(name), "{line}");
    }
    let length = std::fs::metadata(file("counter")).unwrap().len();
    std::fs::File::options().write(true).open(file("counter")).unwrap().set_len(length / 2).unwrap();
    restore("counter");
    std::fs::write(file("text"), "this is no database, it is a text that is long enough to be looked at").unwrap();
    restore("text");
    assert!(restore("absent").contains("there is no database in"));
    // The database was not touched.
    let (process, mut lines) = start_with(directory.path(), &[]);
    ready(&mut lines, "http");
    stop(process);
}

#[test]
fn the_tool_for_backups_of_postgresql_is_named() {
    let run = |command: &str| {
        let url = ["--database-url", "postgres://a@127.0.0.1:1/d"];
        error_line(&Command::new(PROGRAM).args([command, "file"]).args(url).output().unwrap())
    };
    assert!(run("backup").contains("pg_dump") && run("restore").contains("sindri-broker restore-epoch"));
}

#[test]
fn secrets_of_webhooks_are_encrypted_with_another_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, byte: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, byte.repeat(32)).unwrap();
        path.display().to_string()
    };
    let (old, new) = (file("old", "ab"), file("new", "cd"));
    let flag = "--webhooks-encryption-key-file";
    let (process, mut lines) = start_with(directory.path(), &[flag, &old]);
    let (address, admin) = (ready(&mut lines, "http"), read_key(directory.path()));
    for name in ["one", "two"] {
        let body = format!(
            r#"{{"name": "{name}", "url": "https://hooks.example.com/{name}", "event_types": ["*"], "auth_header": "Bearer {name}"}}"#
        );
        call(&address, "POST", "/webhooks", &admin, &body);
    }
    stop(process);
    let missing = error_line(&run(directory.path(), &["rotate-encryption-key", &new]));
    assert!(missing.contains("webhooks.encryption_key_file"), "{missing}");
    let wrong = error_line(&run(directory.path(), &["rotate-encryption-key", &old, flag, &new]));
    assert!(wrong.contains("cannot be decrypted with this key"), "{wrong}");
    let shown = run_successfully(directory.path(), &["rotate-encryption-key", &new, flag, &old]);
    assert!(shown.contains("the secrets of 2 webhooks"), "{shown}");
    let refused = error_line(&run(directory.path(), &[flag, &old, "--listen", "127.0.0.1:0"]));
    assert!(refused.contains("cannot be decrypted with this key"), "{refused}");
    // With the new key each part of each subscription is readable: rotating back decrypts all of them.
    run_successfully(directory.path(), &["rotate-encryption-key", &old, flag, &new]);
    let (process, mut lines) = start_with(directory.path(), &[flag, &old]);
    ready(&mut lines, "http");
    stop(process);
}

/// Returns the bytes of the database with its write-ahead log.
fn database_bytes(directory: &Path) -> Vec<u8> {
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap_or_default();
    [read("sindri.db"), read("sindri.db-wal")].concat()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn encrypted_bundles_leave_no_plain_text_and_survive_rotation_backup_and_restore() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let file = |name: &str, byte: &str| {
        let path = directory.join(name);
        std::fs::write(&path, byte.repeat(32)).unwrap();
        path.display().to_string()
    };
    let (old, new) = (file("old", "ab"), file("new", "cd"));
    let (flag, encrypt) = ("--webhooks-encryption-key-file", ["--encrypt-bundles"]);
    let bundle =
        |canary: &str| serde_json::json!({"yaml_content": format!("{BUNDLE}data: {{x: {canary}}}\n")}).to_string();
    let (process, mut lines) = start_with(directory, &[]);
    let (address, admin) = (ready(&mut lines, "http"), read_key(directory));
    let created = call(&address, "POST", "/generators", &admin, r#"{"name": "shop"}"#);
    let stack = format!(r#"{{"name": "web", "generator_id": "{}"}}"#, text(&created["generator"]["id"]));
    let revisions =
        format!("/stacks/{}/deployment-objects", text(&call(&address, "POST", "/stacks", &admin, &stack)["id"]));
    // Large, so that it has pages of its own, which must not stay in the file either.
    let first = call(&address, "POST", &revisions, &admin, &bundle(&"first-canary".repeat(2_000)));
    stop(process);
    assert!(contains(&database_bytes(directory), "first-canary"));

    let no_key = error_line(&run(directory, &[&encrypt[..], &["--listen", "127.0.0.1:0"]].concat()));
    assert!(no_key.contains("database.encrypt_bundles needs a key"), "{no_key}");
    let (process, mut lines) = start_with(directory, &[&encrypt[..], &[flag, &old]].concat());
    let address = ready(&mut lines, "http");
    let second = call(&address, "POST", &revisions, &admin, &bundle("second-canary"));
    let stored = || {
        let database = Connection::open(directory.join("sindri.db")).unwrap();
        let mut statement = database.prepare("SELECT yaml_content FROM revisions ORDER BY sequence").unwrap();
        let texts = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        texts.collect::<Result<Vec<_>, _>>().unwrap()
    };
    // The first one is encrypted in the background.
    while stored().iter().any(|text| text.contains("canary")) {
        std::thread::yield_now();
    }
    let listed = call(&address, "GET", &revisions, &admin, "");
    assert_eq!((&listed[0], &listed[1]), (&first, &second));
    stop(process);
    let bytes = database_bytes(directory);
    assert!(!contains(&bytes, "first-canary") && !contains(&bytes, "second-canary"));

    let without = error_line(&run(directory, &["--listen", "127.0.0.1:0"]));
    assert!(without.contains("is encrypted and cannot be decrypted"), "{without}");
    let shown = run_successfully(directory, &["rotate-encryption-key", &new, flag, &old]);
    assert!(shown.contains("2 bundles are encrypted"), "{shown}");
    let wrong = error_line(&run(directory, &[flag, &old, "--listen", "127.0.0.1:0"]));
    assert!(wrong.contains("cannot be decrypted with this key"), "{wrong}");
    // A repeated rotation finds nothing to do.
    let shown = run_successfully(directory, &["rotate-encryption-key", &new, flag, &old]);
    assert!(shown.contains("and 0 bundles"), "{shown}");
    let backup = directory.join("backup").display().to_string();
    let shown = run_successfully(directory, &["backup", &backup, flag, &new]);
    assert!(shown.contains("2 revisions") && !shown.contains("not checked"), "{shown}");
    assert!(!contains(&std::fs::read(&backup).unwrap(), "canary"));
    let damaged = error_line(&run(directory, &["restore", &backup, "--overwrite", flag, &old]));
    assert!(damaged.contains("cannot be decrypted with the key"), "{damaged}");
    let shown = run_successfully(directory, &["restore", &backup, "--overwrite"]);
    assert!(shown.contains("2 encrypted bundles were not checked"), "{shown}");
    // Without the setting encrypted bundles are still read, and new ones are plain.
    let (process, mut lines) = start_with(directory, &[flag, &new]);
    let address = ready(&mut lines, "http");
    call(&address, "POST", &revisions, &admin, &bundle("third-canary"));
    let listed = call(&address, "GET", &revisions, &admin, "");
    assert_eq!((&listed[0], &listed[1]), (&first, &second));
    assert!(stored()[2].contains("third-canary"));
    stop(process);
}
