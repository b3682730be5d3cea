//! However a program that has a cluster ends, nothing of the cluster stays.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sindri_cluster::Options;

use crate::support::{Place, pause, text, until};

fn end(holder: &mut Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(holder), signal).unwrap();
    let mut status = None;
    until("the program to end", || {
        status = holder.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_program_that_is_killed_leaves_no_process_and_no_directory() {
    let place = Place::new();
    let mut holder = place.hold("local");
    assert!(place.processes().len() >= 6, "{:?}", place.processes());
    assert_eq!(place.directories().len(), 1);
    end(&mut holder, Signal::KILL);
    place.assert_left_clean();
    assert!(text(&place.run(&["status"]).stdout).contains("stale"));
    assert!(place.run(&["down", "--all"]).status.success());
    assert_eq!(text(&place.run(&["status"]).stdout), "no cluster runs\n");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_supervisor_that_is_killed_takes_its_children_along_and_the_owner_hears_of_it() {
    let place = Place::new();
    let mut cluster = place.start(Options { pristine: true, ..Options::default() }).unwrap();
    let ids = cluster.processes();
    let plane = ids.iter().find(|(name, _)| name == "plane").unwrap().1;
    kill_process(Pid::from_raw(plane.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // Itself a zombie until its owner asks.
    until("its end to be seen", || cluster.check().is_err());
    let runs = |id: &u32| Path::new(&format!("/proc/{id}/exe")).read_link().is_ok();
    until("its children to end", || !ids.iter().any(|(_, id)| runs(id)));
    drop(cluster);
    place.assert_left_clean();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn ctrl_c_leaves_nothing() {
    let place = Place::new();
    let mut holder = place.hold("local");
    assert_eq!(end(&mut holder, Signal::INT), Some(0));
    assert_eq!(place.processes(), Vec::<String>::new());
    assert_eq!(place.directories(), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn ctrl_c_and_a_kill_in_the_middle_of_a_start_leave_nothing() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let place = Place::new();
        let mut command = place.command(&["up", "--cluster", "local"]);
        let mut up = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the start to begin", || !place.directories().is_empty());
        assert_eq!(end(&mut up, signal), code);
        place.assert_left_clean();
    }
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_panic_leaves_nothing() {
    let place = Place::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _cluster = place.start(Options { pristine: true, ..Options::default() }).unwrap();
        assert!(!place.processes().is_empty());
        panic!("as planned");
    }));
    assert!(panicked.is_err());
    assert_eq!(place.processes(), Vec::<String>::new());
    assert_eq!(place.directories(), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_program_that_is_killed_leaves_no_container() {
    let containers =
        || Command::new("docker").args(["ps", "--all", "--quiet", "--filter", "label=sindri.cluster"]).output();
    if !Command::new("docker").arg("info").output().is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: no container engine answers");
        return;
    }
    let place = Place::new();
    let mut holder = place.hold("container");
    end(&mut holder, Signal::KILL);
    until("the container to be gone", || containers().unwrap().stdout.is_empty());
    // And at other moments: before the container is there, while it is made, and before it runs.
    for milliseconds in (0..1_500).step_by(100) {
        let mut command = place.command(&["hold", "--cluster", "container"]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        pause(milliseconds);
        end(&mut holder, Signal::KILL);
    }
    until("every container to be gone", || containers().unwrap().stdout.is_empty());
    place.assert_left_clean();
}

#[test]
fn a_simulated_server_ends_with_a_program_that_is_killed() {
    let place = Place::without_cache();
    if !Path::new(crate::support::COMMAND).with_file_name("sindri-apiserver").exists() {
        panic!("run `cargo build --release -p sindri-apiserver` first");
    }
    let mut holder = place.hold("sim");
    assert!(place.processes().iter().any(|line| line.contains("sindri-apiserver")));
    end(&mut holder, Signal::KILL);
    place.assert_left_clean();
}
