//! The command at a terminal, which the program `script` provides: width, colours, questions and hidden keys.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Broker, parse_cells};

/// Runs a command at a terminal of this width, and types the input. Returns the shown text and the exit code.
fn run_at_terminal(
    broker: &Broker,
    columns: u16,
    arguments: &str,
    input: &str,
    variables: &[(&str, &str)],
) -> (String, i32) {
    let line = format!("stty cols {columns} && exec {} {arguments}", env!("CARGO_BIN_EXE_sindri"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.env_remove("NO_COLOR").env_remove("SINDRI_CONTEXT").env_remove("SINDRI_KEY").env("TERM", "xterm");
    command.env("XDG_CONFIG_HOME", broker.directory.path().join("config")).env("SHELL", "/bin/sh");
    command.env("SINDRI_BROKER", &broker.address).env("SINDRI_KEY_FILE", broker.key_path());
    let command = command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the program script is there");
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap().replace('\r', ""), output.status.code().unwrap())
}

#[test]
fn a_table_fits_the_terminal_and_has_colours_unless_they_are_off() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "an-agent-with-a-long-name", "--cluster", "prod"]);
    let (table, _) = run_at_terminal(&broker, 60, "agent list", "", &[("NO_COLOR", "1")]);
    assert!(table.lines().all(|line| line.chars().count() <= 60) && table.contains('…'), "{table}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let (colored, _) = run_at_terminal(&broker, 200, "agent list", "", &[]);
    assert!(colored.contains("\u{1b}[33minactive\u{1b}[0m"), "{colored:?}");
    let (wide, _) = run_at_terminal(&broker, 60, "agent list -o wide", "", &[("TERM", "dumb")]);
    assert!(!wide.contains('…') && !wide.contains('\u{1b}'), "{wide:?}");
}

#[test]
fn a_deletion_asks_a_person_unless_the_answer_is_given() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    let stacks = || parse_cells(&broker.run_successfully(&["stack", "list"])).len();
    let (asked, code) = run_at_terminal(&broker, 120, "stack delete web", "n\n", &[]);
    assert!(asked.contains("Delete stack web? Each agent that received it removes its objects. [y/N]"), "{asked}");
    assert!(asked.contains("sindri: nothing was changed") && code == 1 && stacks() == 1, "{asked} {code}");
    let (asked, code) = run_at_terminal(&broker, 120, "delete web", "y\n", &[]);
    assert!(asked.contains("stack web is deleted") && code == 0 && stacks() == 0, "{asked} {code}");
    broker.run_successfully(&["stack", "create", "web"]);
    let (not_asked, code) = run_at_terminal(&broker, 120, "stack delete web --yes", "", &[]);
    assert!(!not_asked.contains("[y/N]") && code == 0 && stacks() == 0, "{not_asked} {code}");
}
