//! The cache: built once, by one, and again when it is damaged.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Place, text};

fn one_line(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    words.trim_end().to_owned()
}

/// A directory with a `go` that says this, or with none.
fn path_with(directory: &Path, go: Option<&str>) {
    if let Some(script) = go {
        let path = directory.join("go");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_machine_without_go_or_with_an_old_one_gets_one_line() {
    let (place, tools) = (Place::without_cache(), tempfile::tempdir().unwrap());
    let mut build = place.command(&["build"]);
    let words = one_line(build.env("PATH", tools.path()));
    assert_eq!(
        words,
        "sindri-cluster: not run: local cannot run here: Go is missing (the control plane is built with Go 1.26 or \
         newer); get it from https://go.dev/dl/"
    );
    path_with(tools.path(), Some("#!/bin/sh\necho go1.21.3; echo linux; echo amd64\n"));
    let words = one_line(build.env("PATH", tools.path()));
    assert!(words.contains("go1.21.3 is too old") && words.ends_with("https://go.dev/dl/"), "{words}");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_second_build_says_nothing_and_does_nothing() {
    let output = Place::new().run(&["build"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with("Kubernetes v1.35.4 is built: "));
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_binary_that_was_cut_off_is_noticed_and_built_again() {
    let place = Place::with_copied_cache();
    let entries: Vec<_> =
        std::fs::read_dir(place.home().control_plane()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for entry in entries.iter().filter(|entry| entry.join("plane").exists()) {
        let plane = entry.join("plane");
        std::fs::remove_file(&plane).unwrap();
        std::fs::write(&plane, "cut").unwrap();
    }
    let output = place.run(&["build"]);
    let words = text(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert!(words.starts_with("plane in the cache is damaged (plane has 3 bytes instead of "), "{words}");
    assert!(words.lines().next().unwrap().ends_with("): it is built again"), "{words}");
    assert_eq!(text(&place.run(&["build"]).stderr), "");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn two_who_build_at_once_build_once() {
    let place = Place::with_copied_cache();
    for entry in std::fs::read_dir(place.home().control_plane()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.join("plane").exists() {
            std::fs::remove_dir_all(entry).unwrap();
        }
    }
    let start = || place.command(&["build"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let outputs = [start(), start()].map(|build| build.wait_with_output().unwrap());
    let words: String = outputs.iter().map(|output| text(&output.stderr)).collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{words}");
    assert_eq!(words.lines().filter(|line| line.contains(": done, ")).count(), 1, "{words}");
    let left: Vec<_> =
        std::fs::read_dir(place.home().control_plane()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!left.iter().any(|path| path.to_str().unwrap().ends_with(".partial")), "{left:?}");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_build_that_is_killed_leaves_no_compiler_running() {
    let (place, tools) = (Place::without_cache(), tempfile::tempdir().unwrap());
    let slow = "#!/bin/sh\n[ \"$1\" = env ] && { echo go1.26.8; echo linux; echo amd64; exit; }\nsleep 600\n";
    path_with(tools.path(), Some(slow));
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let mut build =
        place.command(&["build"]).env("PATH", path).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    crate::support::until("the compiler to run", || place.processes().iter().any(|line| line.contains("/go build")));
    build.kill().unwrap();
    build.wait().unwrap();
    crate::support::until("the compiler to end", || place.processes().is_empty());
}
