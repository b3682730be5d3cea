//! The figures of the broker and of the agent: what is needed for them, what the broker is compared with, and how they are
//! interrupted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{COMMAND, Place, text, until};

#[test]
fn a_missing_broker_is_named_with_the_command_that_makes_it() {
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("sindri-conformance");
    std::fs::copy(COMMAND, &copy).unwrap();
    let output = Command::new(&copy).arg("bench-broker").output().unwrap();
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.starts_with("sindri-conformance: sindri-broker is not in "), "{words}");
    assert!(words.trim_end().ends_with("build it with `cargo build --release -p sindri-broker`"), "{words}");
}

#[test]
fn the_bare_server_answers_a_poll_with_the_brokers_headers_and_nothing_else() {
    let mut server = Command::new(COMMAND).arg("bare-server").stdout(Stdio::piped()).spawn().unwrap();
    let ready = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let mut stream = TcpStream::connect(ready.strip_prefix("READY http://").unwrap()).unwrap();
    stream.write_all(b"GET /api/v1/agents/1/target-state HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 304 Not Modified\r\netag: \""), "{answer}");
    assert!(answer.contains("\r\nx-sindri-epoch: 1\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn ctrl_c_ends_every_server_that_is_measured() {
    let place = Place::new();
    let mut bench = place.command(&["bench-broker"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a broker to run", || !place.processes().is_empty());
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    let mut status = None;
    until("the figures to end", || {
        status = bench.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
    place.assert_left_clean();
}

#[test]
fn a_part_of_the_agents_figures_is_measured_shown_and_written() {
    let place = Place::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("figures.json");
    let arguments = ["bench-agent", "--cluster", "sim", "--filter", "changed stack", "--json", file.to_str().unwrap()];
    let output = place.run(&arguments);
    let (table, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{table}{progress}");
    assert_eq!(progress, "measuring sim: changed stack\n");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(figures.as_array().map(Vec::len), Some(1), "{figures}");
    assert_eq!(figures[0]["area"], "agent");
    assert_eq!(figures[0]["name"], "sim: a stack of 100 changed, calls");
    // A dry run and an apply of each at least: fewer would not have been counted.
    assert!(figures[0]["value"].as_f64().is_some_and(|calls| calls >= 200.0), "{figures}");
    assert!(table.contains("sim: a stack of 100 changed, calls "), "{table}");
    place.assert_left_clean();
}

#[test]
fn a_part_of_the_agents_figures_that_does_not_exist_is_a_mistake() {
    let output = Place::new().run(&["bench-agent", "--filter", "nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no part of the agent's figures has \"nonsense\" in its name"));
}
