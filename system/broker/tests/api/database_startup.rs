//! Checks of the database at the start of the process: a recorded restore, and the encryption key of secrets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::process::{PROGRAM, error_line, ready, start_with, stop};

/// Sends a request on a new connection and returns the response.
pub fn send(address: &str, method: &str, path: &str, key: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("{method} /api/v1{path} HTTP/1.1\r\nhost: b\r\nconnection: close\r\nauthorization: {}", key.trim());
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn an_operator_begins_a_new_epoch_after_a_restore() {
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
    let restored = || Command::new(PROGRAM).args(["restore-epoch", "--database-url", &database]).output().unwrap();
    let (process, mut lines) = start_with(directory.path(), &[]);
    let address = ready(&mut lines, "http");
    assert!(error_line(&restored()).contains("in use by another process"));
    let admin = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let created = send(&address, "POST", "/agents", &admin, r#"{"name": "east", "cluster_name": "c"}"#);
    let agent = created.split(r#""id":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let epoch = |address: &str| {
        let response = send(address, "GET", &format!("/agents/{agent}/target-state"), &admin, "");
        let line = response.lines().find_map(|line| line.strip_prefix("x-sindri-epoch: ").map(str::to_owned));
        line.unwrap_or_else(|| panic!("{response}"))
    };
    assert_eq!(epoch(&address), "1");
    stop(process);
    let output = restored();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"epoch 2 begins\n".to_vec()));
    let (process, mut lines) = start_with(directory.path(), &[]);
    assert_eq!(epoch(&ready(&mut lines, "http")), "2");
    stop(process);
}

#[test]
fn an_operator_who_has_lost_every_key_creates_an_administrator() {
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
    let file = directory.path().join("anna.key");
    let create = |name: &str, file: &str| {
        Command::new(PROGRAM).args(["create-admin", name, file, "--database-url", &database]).output().unwrap()
    };
    let file_name = file.to_str().unwrap();
    let (process, mut lines) = start_with(directory.path(), &[]);
    ready(&mut lines, "http");
    assert!(error_line(&create("anna", file_name)).contains("in use by another process"));
    stop(process);
    for (name, reason) in [("admin", "exists"), ("", "1 to"), ("oidc:anna", "choose another name")] {
        let line = error_line(&create(name, file_name));
        assert!(line.contains(reason) && !file.exists(), "{name}: {line}");
    }
    assert_eq!(create("anna", file_name).status.code(), Some(0));
    assert!(error_line(&create("ben", file_name)).contains("use another file"), "no key is overwritten");
    let missing = format!("sqlite:{}", directory.path().join("other.db").display());
    let created =
        Command::new(PROGRAM).args(["create-admin", "ben", "-", "--database-url", &missing]).output().unwrap();
    assert!(error_line(&created).contains("there is no database at ") && created.stdout.is_empty());
    assert!(!directory.path().join("other.db").exists());
    let printed = create("ben", "-");
    let keys = [std::fs::read_to_string(&file).unwrap(), String::from_utf8(printed.stdout).unwrap()];
    let (process, mut lines) = start_with(directory.path(), &[]);
    let address = ready(&mut lines, "http");
    for key in keys {
        let identity = send(&address, "POST", "/auth/pak", &key, "");
        assert!(identity.starts_with("HTTP/1.1 200"), "{identity}");
    }
    let audit = send(&address, "GET", "/admin/audit-logs", &std::fs::read_to_string(&file).unwrap(), "");
    assert!(audit.contains(r#""name":"anna""#) && audit.contains("system"), "{audit}");
    stop(process);
}

#[test]
fn the_broker_does_not_start_without_the_key_of_its_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let (right, wrong) = (directory.path().join("right"), directory.path().join("wrong"));
    std::fs::write(&right, "ab".repeat(32)).unwrap();
    std::fs::write(&wrong, "cd".repeat(32)).unwrap();
    let flag = "--webhooks-encryption-key-file";
    let (process, mut lines) = start_with(directory.path(), &[flag, right.to_str().unwrap()]);
    let address = ready(&mut lines, "http");
    let admin = std::fs::read_to_string(directory.path().join("key")).unwrap();
    let body = r#"{"name": "hook", "url": "https://hooks.example.com/hidden", "event_types": ["*"]}"#;
    let created = send(&address, "POST", "/webhooks", &admin, body);
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    stop(process);
    let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
    let run = |more: &[&str]| Command::new(PROGRAM).args(["--database-url", &database]).args(more).output().unwrap();
    for refused in [run(&[]), run(&[flag, wrong.to_str().unwrap()])] {
        let line = error_line(&refused);
        assert!(line.contains("cannot be decrypted") && line.contains("webhooks.encryption_key_file"), "{line}");
    }
    assert!(error_line(&run(&[flag, "no/such/file"])).contains("no/such/file"));
    let mut stored = std::fs::read(directory.path().join("sindri.db")).unwrap();
    stored.extend(std::fs::read(directory.path().join("sindri.db-wal")).unwrap_or_default());
    let holds = |text: &[u8]| stored.windows(text.len()).any(|bytes| bytes == text);
    assert!(holds(b"hook") && !holds(b"hidden"), "the name is stored in plain text and the URL is encrypted");
    let (process, mut lines) = start_with(directory.path(), &[flag, right.to_str().unwrap()]);
    ready(&mut lines, "http");
    stop(process);
}

/// Returns the URL of an empty PostgreSQL schema, if a server is configured.
#[expect(clippy::disallowed_methods, reason = "the test command passes the URL in the environment")]
async fn fresh_schema() -> Option<String> {
    let Ok(url) = std::env::var("SINDRI_TEST_POSTGRES_URL") else {
        eprintln!("skipped: SINDRI_TEST_POSTGRES_URL is not set; `cargo xtask test` sets it");
        return None;
    };
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).unwrap();
    let name = format!("test_{:016x}", u64::from_le_bytes(random));
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    client.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    Some(format!("{url}?options=-csearch_path%3D{name}"))
}

#[tokio::test]
async fn of_two_first_starts_on_one_database_one_creates_the_key_of_the_administrator() {
    let Some(url) = fresh_schema().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let files = ["one", "two"].map(|name| directory.path().join(name));
    let mut processes = files.clone().map(|file| {
        let mut command = Command::new(PROGRAM);
        command.args(["--listen", "127.0.0.1:0", "--log", "off", "--database-url", &url, "--admin-key-file"]);
        command.arg(file).stdout(Stdio::piped()).spawn().unwrap()
    });
    let addresses =
        processes.each_mut().map(|process| ready(&mut BufReader::new(process.stdout.take().unwrap()).lines(), "http"));
    let keys: Vec<String> = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    assert_eq!(keys.len(), 1, "a key that is not valid is not left behind");
    for address in &addresses {
        let identity = send(address, "POST", "/auth/pak", &keys[0], "");
        assert!(identity.starts_with("HTTP/1.1 200"), "{identity}");
    }
    processes.into_iter().for_each(stop);
}
