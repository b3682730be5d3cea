//! A cluster leaves nothing behind, no matter how the program that owns it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sindri_cluster::Options;

use crate::support::{TestHome, pause, text, wait_until};

fn end(holder: &mut Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(holder), signal).unwrap();
    let mut status = None;
    wait_until("the program to end", || {
        status = holder.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_killed_program_leaves_no_process_and_no_directory() {
    let home = TestHome::new();
    let mut holder = home.hold("local");
    assert!(home.processes().len() >= 6, "{:?}", home.processes());
    assert_eq!(home.directories().len(), 1);
    end(&mut holder, Signal::KILL);
    home.assert_clean();
    assert!(text(&home.run(&["status"]).stdout).contains("stale"));
    assert!(home.run(&["down", "--all"]).status.success());
    assert_eq!(text(&home.run(&["status"]).stdout), "no cluster runs\n");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn the_children_of_a_killed_supervisor_end_and_the_owner_gets_an_error() {
    let home = TestHome::new();
    let mut cluster = home.start(Options { pristine: true, ..Options::default() }).unwrap();
    let ids = cluster.processes();
    let plane = ids.iter().find(|(name, _)| name == "plane").unwrap().1;
    kill_process(Pid::from_raw(plane.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // It is a zombie until its owner reaps it.
    wait_until("its end to be seen", || cluster.check().is_err());
    let runs = |id: &u32| Path::new(&format!("/proc/{id}/exe")).read_link().is_ok();
    wait_until("its children to end", || !ids.iter().any(|(_, id)| runs(id)));
    drop(cluster);
    home.assert_clean();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn ctrl_c_leaves_nothing_behind() {
    let home = TestHome::new();
    let mut holder = home.hold("local");
    assert_eq!(end(&mut holder, Signal::INT), Some(0));
    assert_eq!(home.processes(), Vec::<String>::new());
    assert_eq!(home.directories(), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn ctrl_c_and_sigkill_during_a_start_leave_nothing_behind() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let home = TestHome::new();
        let mut command = home.command(&["up", "--cluster", "local"]);
        let mut up = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the start to begin", || !home.directories().is_empty());
        assert_eq!(end(&mut up, signal), code);
        home.assert_clean();
    }
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_panic_leaves_nothing_behind() {
    let home = TestHome::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _cluster = home.start(Options { pristine: true, ..Options::default() }).unwrap();
        assert!(!home.processes().is_empty());
        panic!("as planned");
    }));
    assert!(panicked.is_err());
    assert_eq!(home.processes(), Vec::<String>::new());
    assert_eq!(home.directories(), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_killed_program_leaves_no_container() {
    let containers =
        || Command::new("docker").args(["ps", "--all", "--quiet", "--filter", "label=sindri.cluster"]).output();
    if !Command::new("docker").arg("info").output().is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: no container engine responds");
        return;
    }
    let home = TestHome::new();
    let mut holder = home.hold("container");
    end(&mut holder, Signal::KILL);
    wait_until("the container to be gone", || containers().unwrap().stdout.is_empty());
    // Also at other moments: before the container is created, meanwhile, and before it runs.
    for milliseconds in (0..1_500).step_by(100) {
        let mut command = home.command(&["hold", "--cluster", "container"]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        pause(milliseconds);
        end(&mut holder, Signal::KILL);
    }
    wait_until("every container to be gone", || containers().unwrap().stdout.is_empty());
    home.assert_clean();
}

#[test]
fn a_simulated_server_ends_with_a_killed_program() {
    let home = TestHome::without_cache();
    if !Path::new(crate::support::COMMAND).with_file_name("sindri-apiserver").exists() {
        panic!("run `cargo build --release -p sindri-apiserver` first");
    }
    let mut holder = home.hold("sim");
    assert!(home.processes().iter().any(|line| line.contains("sindri-apiserver")));
    end(&mut holder, Signal::KILL);
    home.assert_clean();
}
