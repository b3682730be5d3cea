//! A signal in the middle of a run ends everything that the run started.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Place, root_with, story, until};

fn interrupt(signal: Signal, code: i32) {
    let place = Place::new();
    let root = root_with(&story("  - polls: 20\n  - polls: 20\n"));
    let mut run = place.command(&["run", "--root", root.path().to_str().unwrap()]).spawn().unwrap();
    // A broker, an API server and an agent.
    until("the processes to run", || place.programs() == 3);
    kill_process(Pid::from_child(&run), signal).unwrap();
    let mut status = None;
    until("the run to end", || {
        status = run.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(code));
    place.assert_left_clean();
}

#[test]
fn a_run_that_is_killed_leaves_nothing_running_and_no_file() {
    let place = Place::new();
    let root = root_with(&story("  - polls: 20\n  - polls: 20\n"));
    let mut run = place.command(&["run", "--root", root.path().to_str().unwrap()]).spawn().unwrap();
    until("the processes to run", || place.programs() == 3);
    run.kill().unwrap();
    run.wait().unwrap();
    until("what it left to be gone", || place.processes().is_empty() && place.files().is_empty());
}

#[test]
fn ctrl_c_leaves_nothing_running() {
    interrupt(Signal::INT, 130);
}

#[test]
fn a_request_to_terminate_leaves_nothing_running() {
    interrupt(Signal::TERM, 143);
}

#[test]
fn a_terminal_that_is_closed_leaves_nothing_running() {
    interrupt(Signal::HUP, 129);
}

#[test]
fn ctrl_c_is_how_a_demonstration_ends() {
    let place = Place::new();
    let mut demo = place.command(&["demo", "--seconds", "600"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(demo.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().ends_with("Ctrl-C ends them.")));
    assert_eq!(place.programs(), 3);
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    assert!(lines.any(|line| line.unwrap().starts_with("Everything is ended")));
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    place.assert_left_clean();
}
