//! A signal during a run ends all processes that the run has started.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{TestRun, root_with, scenario, wait_until};

fn interrupt(signal: Signal, code: i32) {
    let run = TestRun::new();
    let root = root_with(&scenario("  - polls: 20\n  - polls: 20\n"));
    let mut child = run.command(&["run", "--root", root.path().to_str().unwrap()]).spawn().unwrap();
    // A broker, an API server and an agent.
    wait_until("the processes to run", || run.programs() == 3);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let mut status = None;
    wait_until("the run to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(code));
    run.assert_clean();
}

#[test]
fn a_killed_run_leaves_no_process_and_no_file() {
    let run = TestRun::new();
    let root = root_with(&scenario("  - polls: 20\n  - polls: 20\n"));
    let mut child = run.command(&["run", "--root", root.path().to_str().unwrap()]).spawn().unwrap();
    wait_until("the processes to run", || run.programs() == 3);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("what it left to be gone", || run.processes().is_empty() && run.files().is_empty());
}

#[test]
fn ctrl_c_leaves_nothing_running() {
    interrupt(Signal::INT, 130);
}

#[test]
fn sigterm_leaves_nothing_running() {
    interrupt(Signal::TERM, 143);
}

#[test]
fn a_closed_terminal_leaves_nothing_running() {
    interrupt(Signal::HUP, 129);
}

#[test]
fn ctrl_c_ends_a_demonstration_with_success() {
    let run = TestRun::new();
    let mut demo = run.command(&["demo", "--seconds", "600"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(demo.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().ends_with("Ctrl-C ends them.")));
    assert_eq!(run.programs(), 3);
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    assert!(lines.any(|line| line.unwrap().starts_with("All processes have ended")));
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    run.assert_clean();
}
