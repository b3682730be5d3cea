//! A server that continues with the objects of another one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use sindri_apiserver::ApiServer;

use crate::harness::*;

#[test]
fn a_server_continues_with_exported_objects() {
    let mut machine = Machine::new();
    let now = machine.now;
    let complete = |server: ApiServer| server.with_workloads().with_kubelet(now, &["node-1"]);
    machine.server = complete(machine.server.clone());
    machine.create_gadget_crd();
    let first = machine.post(GADGETS, &gadget("first", &json!({"size": 1})));
    machine.post(DEPLOYMENTS, &deployment("web"));
    let document = machine.server.export();
    let revision = machine.server.revision();

    machine.server = complete(ApiServer::new(7, machine.now));
    machine.server.import(machine.now, &document).expect("it was just exported");
    assert_eq!(machine.server.revision(), revision);
    assert_eq!(machine.get(&format!("{GADGETS}/first")).body, first.body);
    let second = machine.post(GADGETS, &gadget("second", &json!({"size": 1})));
    assert_eq!(second.status, 201, "{}", second.body);
    assert_ne!(second.uid(), first.uid());
    // The Deployment had no pods yet; its controller continues.
    machine.advance(60_000);
    assert_eq!(machine.get(&format!("{DEPLOYMENTS}/web")).body["status"]["availableReplicas"], 1);
}

#[test]
fn a_document_of_another_version_is_rejected() {
    let mut machine = Machine::new();
    let mut document = machine.server.export();
    document["version"] = json!(2);
    let error = machine.server.import(machine.now, &document).unwrap_err();
    assert_eq!(error, "its version is 2, and this program reads 1");
}

/// Starts `serve --data` and returns the process with its address.
fn serve(file: &Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sindri-apiserver"))
        .args(["serve", "--plain-http", "--data"])
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    output.read_line(&mut line).expect("a line");
    let url = line.trim().strip_prefix("READY ").expect("it is ready").to_owned();
    (child, url)
}

fn stop(mut child: Child) {
    let ended = Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
    assert!(ended.success() && child.wait().expect("it ends").success());
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").arg("--silent").args(arguments).output().expect("curl runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_data_file_keeps_the_objects() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("data.json");
    let (child, url) = serve(&file);
    let namespace = r#"{"metadata":{"name":"kept"}}"#;
    let created = curl(&["-H", "Content-Type: application/json", "-d", namespace, &format!("{url}/api/v1/namespaces")]);
    assert!(created.contains("\"name\": \"kept\""), "{created}");
    stop(child);
    let (child, url) = serve(&file);
    let read = curl(&[&format!("{url}/api/v1/namespaces/kept")]);
    assert!(read.contains("\"name\": \"kept\""), "{read}");
    stop(child);
}
