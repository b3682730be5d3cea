//! The file with the agent's access key: required permissions, and error messages.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sindri_model::wire::{AgentEvent, EventStatus};
use sindri_model::{AgentId, RevisionId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{BUNDLE, admin, agent, broker, client, cluster, declare, error_line, in_time, listener, serve};

/// Returns the error line for a file with this content and these permissions. A good key leads to the error that no cluster
/// is configured.
fn run_with_file(path: &Path, content: &str, mode: u32) -> String {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    run(path)
}

fn run(path: &Path) -> String {
    let mut command = agent();
    command.args(["--name", "east", "--cluster", "demo", "--broker", "http://127.0.0.1:1", "--pak-file"]).arg(path);
    error_line(&command.output().unwrap())
}

#[test]
fn a_key_file_is_rejected_if_other_users_can_access_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    for mode in [0o600, 0o400, 0o440] {
        assert!(run_with_file(&path, "brokkr_BRa_hidden\n", mode).contains("no kubeconfig is set"), "{mode:o}");
        std::fs::remove_file(&path).unwrap();
    }
    let line = run_with_file(&path, "brokkr_BRa_hidden\n", 0o644);
    assert!(line.contains("key is accessible to other users (mode 0644): run chmod 600 on it"), "{line}");
    assert!(!line.contains("hidden"));
}

#[test]
fn a_key_file_without_a_key_gives_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    assert!(run(&path).contains("key: No such file"));
    assert!(run_with_file(&path, " \n", 0o600).contains("holds no key"));
    let line = run_with_file(&path, "hid\nden", 0o600);
    assert!(line.contains("characters that are not allowed in an HTTP header") && !line.contains("hid"), "{line}");
}

/// Replaces the key of an agent, which ends at once; returns the new one.
async fn rotate_key(broker: SocketAddr, agent: AgentId, key: &str) -> String {
    let mut stream = TcpStream::connect(broker).await.unwrap();
    let headers = format!("host: a\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-length: 0");
    let request = format!("POST /api/v1/agents/{agent}/rotate-pak HTTP/1.1\r\n{headers}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    in_time(stream.read_to_string(&mut response)).await.unwrap();
    let body: Value = serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["pak"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_in_the_file_is_used_without_a_restart() {
    let (at_broker, broker_address) = listener().await;
    let (at_cluster, cluster_address) = listener().await;
    let (_api, _broker) = (cluster(at_cluster), serve(&broker().await, at_broker, None));
    let admin = client(broker_address, &admin().reveal());
    let (key, stack) = declare(&admin).await;
    let agent_id = admin.find_agent("east", "demo").await.unwrap().id;
    let directory = tempfile::tempdir().unwrap();
    let (key_file, kubeconfig) = (directory.path().join("key"), directory.path().join("kubeconfig"));
    let write_key = |key: &str| {
        std::fs::write(&key_file, key).unwrap();
        std::fs::set_permissions(&key_file, PermissionsExt::from_mode(0o600)).unwrap();
    };
    write_key(&key);
    let context =
        "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\nusers: [{name: a, user: {}}]";
    let clusters = format!("clusters: [{{name: a, cluster: {{server: 'http://{cluster_address}'}}}}]\n{context}\n");
    std::fs::write(&kubeconfig, clusters).unwrap();
    let mut command = agent();
    command.args(["--name", "east", "--cluster", "demo", "--broker", &format!("http://{broker_address}")]);
    command.args(["--polling-interval", "1", "--log", "off", "--pak-file"]).arg(&key_file);
    command.arg("--kubeconfig").arg(&kubeconfig).stdout(Stdio::null());
    let mut process = command.spawn().unwrap();
    let wait_for_success = async |revision: Option<RevisionId>| loop {
        let outcomes = admin.list_outcomes(agent_id).await.unwrap();
        let is_wanted = |event: &AgentEvent| revision.is_none_or(|revision| event.deployment_object_id == revision);
        if outcomes.iter().any(|event| is_wanted(event) && event.status == EventStatus::Success) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    in_time(wait_for_success(None)).await;
    write_key(&rotate_key(broker_address, agent_id, &key).await);
    let newest = admin.submit_revision(stack, &BUNDLE.replace("x: '1'", "x: '2'")).await.unwrap();
    in_time(wait_for_success(Some(newest.id))).await;
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_key_and_a_key_file_exclude_each_other() {
    let mut command = agent();
    let output = command.env("SINDRI__AGENT__PAK", "brokkr_BRa_hidden").args(["--pak-file", "key"]).output().unwrap();
    assert_eq!(error_line(&output), "sindri-agent: agent.pak and agent.pak_file are both set: set at most one of them");
}
