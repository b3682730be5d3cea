//! The command with real processes: errors of the user, interruption, the bare server, and one part of the agent's figures.
//!
//! The other binaries are expected next to this crate's:
//! `cargo build -p sindri-broker -p sindri-agent -p sindri-apiserver -p sindri-cli` builds them.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-bench");

/// A directory for temporary files, and the command that uses it.
fn command(arguments: &[&str]) -> (TempDir, Command) {
    for name in ["sindri-broker", "sindri-agent", "sindri-apiserver", "sindri"] {
        assert!(
            Path::new(COMMAND).with_file_name(name).exists(),
            "run `cargo build -p sindri-broker -p sindri-agent -p sindri-apiserver -p sindri-cli` first, with the profile of \
             this test: {name} is missing"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(COMMAND);
    command.args(arguments).env("TMPDIR", directory.path());
    (directory, command)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Command lines of the processes that have a path in the directory as an argument, as all measured processes have.
fn processes(directory: &TempDir) -> Vec<String> {
    let marker = directory.path().to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| text(&line).replace('\0', " "));
    lines.filter(|line| line.contains(marker)).collect()
}

/// Checks that neither a process nor a file is left.
fn assert_clean(directory: &TempDir) {
    assert_eq!(processes(directory), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..300 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("waited 30 s for {what}");
}

#[test]
fn the_error_for_a_missing_broker_has_the_command_that_builds_it() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("sindri-bench");
    std::fs::copy(COMMAND, &copy).unwrap();
    let output = Command::new(&copy).arg("broker").output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("sindri-bench: sindri-broker is not in "), "{message}");
    assert!(message.trim_end().ends_with("build it with `cargo build --release -p sindri-broker`"), "{message}");
}

#[test]
fn the_bare_server_answers_a_poll_with_the_headers_of_the_broker_and_no_body() {
    let mut server = Command::new(COMMAND).arg("bare-server").stdout(Stdio::piped()).spawn().unwrap();
    let ready = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let mut stream = TcpStream::connect(ready.strip_prefix("READY http://").unwrap()).unwrap();
    stream.write_all(b"GET /api/v1/agents/1/target-state HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(response.starts_with("HTTP/1.1 304 Not Modified\r\netag: \""), "{response}");
    assert!(response.contains("\r\nx-sindri-epoch: 1\r\n") && response.ends_with("\r\n\r\n"), "{response}");
}

#[test]
fn ctrl_c_ends_all_measured_servers() {
    let (directory, mut command) = command(&["broker"]);
    let mut bench = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a broker to run", || !processes(&directory).is_empty());
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    let mut status = None;
    wait_until("the benchmark to end", || {
        status = bench.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
    assert_clean(&directory);
}

#[test]
fn a_part_of_the_agents_figures_is_measured_printed_and_written() {
    let results = tempfile::tempdir().unwrap();
    let file = results.path().join("figures.json");
    let arguments = ["agent", "--cluster", "sim", "--filter", "changed stack", "--json", file.to_str().unwrap()];
    let (directory, mut command) = command(&arguments);
    let output = command.output().unwrap();
    let (table, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{table}{progress}");
    assert_eq!(progress, "measuring sim: changed stack\n");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(figures.as_array().map(Vec::len), Some(1), "{figures}");
    assert_eq!(figures[0]["area"], "agent");
    assert_eq!(figures[0]["name"], "sim: a stack of 100 changed, calls");
    // At least a dry run and an apply of each object: fewer would mean that calls are not counted.
    assert!(figures[0]["value"].as_f64().is_some_and(|calls| calls >= 200.0), "{figures}");
    assert!(table.contains("sim: a stack of 100 changed, calls "), "{table}");
    assert_clean(&directory);
}

#[test]
fn a_filter_that_matches_no_part_is_an_error_of_the_user() {
    let (_directory, mut command) = command(&["agent", "--filter", "nonsense"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no part of the agent's figures has \"nonsense\" in its name"));
}

#[test]
fn figures_for_people_are_measured_and_those_without_their_program_are_named() {
    let results = tempfile::tempdir().unwrap();
    let file = results.path().join("figures.json");
    let arguments = ["people", "--filter", "start of", "--json", file.to_str().unwrap()];
    let (directory, mut measure) = command(&arguments);
    let output = measure.output().unwrap();
    let (table, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{table}{errors}");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(figures[0]["name"], "sindri version --client, median of 30 processes");
    assert!(figures[0]["value"].as_f64().is_some_and(|milliseconds| milliseconds > 0.1), "{figures}");
    assert_clean(&directory);

    let (directory, mut measure) = command(&["people", "--filter", "installation"]);
    let output = measure.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "a part that could not be measured is a failure");
    let table = text(&output.stdout);
    assert!(table.contains("installation") && table.contains("could not be measured: no --helm was given"), "{table}");
    assert_clean(&directory);
}
