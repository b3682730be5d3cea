//! The cache: built once, by one process, and again when it is damaged.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{TestHome, text};

fn one_line(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    message.trim_end().to_owned()
}

/// Writes a script that is run instead of `go`.
fn write_go(directory: &Path, script: &str) {
    let path = directory.join("go");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_missing_or_old_go_is_reported_in_one_line() {
    let (home, tools) = (TestHome::without_cache(), tempfile::tempdir().unwrap());
    let mut build = home.command(&["build"]);
    let message = one_line(build.env("PATH", tools.path()));
    assert_eq!(
        message,
        "sindri-cluster: not run: local cannot run here: Go is missing (the control plane is built with Go 1.26 or \
         newer); get it from https://go.dev/dl/"
    );
    write_go(tools.path(), "#!/bin/sh\necho go1.21.3; echo linux; echo amd64\n");
    let message = one_line(build.env("PATH", tools.path()));
    assert!(message.contains("go1.21.3 is too old") && message.ends_with("https://go.dev/dl/"), "{message}");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_second_build_does_nothing_and_prints_no_progress() {
    let output = TestHome::new().run(&["build"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with("Kubernetes v1.35.4 is built: "));
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_truncated_binary_is_noticed_and_built_again() {
    let home = TestHome::with_copied_cache();
    let entries: Vec<_> =
        std::fs::read_dir(home.cache_home().control_plane()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for entry in entries.iter().filter(|entry| entry.join("plane").exists()) {
        let plane = entry.join("plane");
        std::fs::remove_file(&plane).unwrap();
        std::fs::write(&plane, "cut").unwrap();
    }
    let output = home.run(&["build"]);
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(message.starts_with("plane in the cache is damaged (plane has 3 bytes instead of "), "{message}");
    assert!(message.lines().next().unwrap().ends_with("): building it again"), "{message}");
    assert_eq!(text(&home.run(&["build"]).stderr), "");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn two_concurrent_builds_compile_once() {
    let home = TestHome::with_copied_cache();
    for entry in std::fs::read_dir(home.cache_home().control_plane()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.join("plane").exists() {
            std::fs::remove_dir_all(entry).unwrap();
        }
    }
    let start = || home.command(&["build"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let outputs = [start(), start()].map(|build| build.wait_with_output().unwrap());
    let message: String = outputs.iter().map(|output| text(&output.stderr)).collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{message}");
    assert_eq!(message.lines().filter(|line| line.contains(": done, ")).count(), 1, "{message}");
    let left: Vec<_> =
        std::fs::read_dir(home.cache_home().control_plane()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!left.iter().any(|path| path.to_str().unwrap().ends_with(".partial")), "{left:?}");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_build_that_is_killed_leaves_no_compiler_running() {
    let (home, tools) = (TestHome::without_cache(), tempfile::tempdir().unwrap());
    let slow = "#!/bin/sh\n[ \"$1\" = env ] && { echo go1.26.8; echo linux; echo amd64; exit; }\nsleep 600\n";
    write_go(tools.path(), slow);
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let mut build =
        home.command(&["build"]).env("PATH", path).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    crate::support::wait_until("the compiler to run", || {
        home.processes().iter().any(|line| line.contains("/go build"))
    });
    build.kill().unwrap();
    build.wait().unwrap();
    crate::support::wait_until("the compiler to end", || home.processes().is_empty());
}
