//! Failures: each error has the last lines of the right log and advice.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use sindri_cluster::binaries::Manifest;
use sindri_cluster::{ContainerProvider, Home, LocalProvider, Options, Provider};

use crate::support::{COMMAND, TestHome, start_error, text};

fn assert_contains_all(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing in:\n{message}");
    }
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_port_in_use_is_named() {
    let home = TestHome::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let message = start_error(home.start(Options { port: Some(port), ..Options::default() }));
    assert_eq!(
        message,
        format!("port {port} of 127.0.0.1 is in use\n  what to do: choose another port, or none to get a free one")
    );
    home.assert_clean();
    let options = Options { port: Some(port), directory: Some(home.path().join("cluster")), ..Options::default() };
    let message = start_error(ContainerProvider::new(Home::from_env()).start(&options));
    assert!(message.contains("is in use") || message.contains("no container engine responds"), "{message}");
    home.assert_clean();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn two_clusters_do_not_share_a_given_port() {
    let (home, other) = (TestHome::new(), TestHome::new());
    let pristine = Options { pristine: true, ..Options::default() };
    let first = home.start(pristine.clone()).unwrap();
    let port = first.access().server.rsplit(':').next().unwrap().parse().ok();
    assert!(start_error(other.start(Options { port, ..pristine.clone() })).contains("is in use"));
    drop(first);
    // The port is free again after the end of the first.
    other.start(Options { port, ..pristine }).unwrap();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_full_disk_is_reported_as_such() {
    let home = TestHome::new();
    std::fs::create_dir_all(home.cache_home().clusters()).unwrap();
    let clusters = home.cache_home().clusters();
    let script = r#"mount -t tmpfs -o size=8m full "$1" && exec "$2" hold --cluster local"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&clusters).arg(COMMAND);
    home.set_environment(&mut command);
    let mut held = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Open until it has ended: a closed stdin would end it.
    let stdin = held.stdin.take();
    let output = held.wait_with_output().unwrap();
    drop(stdin);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_contains_all(
        &message,
        &["no space left on device", "last lines of etcd", "what to do: the disk is full: make room"],
    );
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_full_disk_during_a_build_is_reported_too() {
    let home = TestHome::without_cache();
    let script = r#"mount -t tmpfs -o size=40m full "$1" && exec "$2" build"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(home.cache_home().path()).arg(COMMAND);
    home.set_environment(&mut command);
    let output = command.output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_contains_all(&message, &["could not be built", "no space left on device", "what to do: the disk is full"]);
}

/// Replaces a program of a copied cache by a script.
fn replace(entry: &Path, program: &str, script: &str) {
    let path = entry.join(program);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(entry.join("manifest")).unwrap();
    let names = std::fs::read_dir(entry).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    Manifest::write(entry, names.iter().map(String::as_str)).unwrap();
}

fn start_with(program: &str, script: &str) -> String {
    let home = TestHome::with_copied_cache();
    replace(&home.entry_with(program, ""), program, script);
    if program != "kwok" {
        // The entry of the version that is used.
        replace(&home.entry_with(program, "v1.35.4"), program, script);
    }
    let options = Options { directory: Some(home.path().join("cluster")), ..Options::default() };
    let message = start_error(LocalProvider::new(home.cache_home()).start(&options));
    home.assert_clean();
    message
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_program_that_crashes_at_its_start_is_named_with_its_last_lines() {
    let message = start_with("kube-apiserver", "#!/bin/sh\necho first\necho boom >&2\nexit 7\n");
    assert_contains_all(
        &message,
        &["kube-apiserver ended unexpectedly: exit status 7", "last lines of kube-apiserver", "    boom"],
    );
    assert_contains_all(&message, &["what to do: start it with --keep"]);
    let message = start_with("kwok", "#!/bin/sh\necho no stages\nexit 3\n");
    assert_contains_all(&message, &["kwok ended unexpectedly: exit status 3", "last lines of kwok", "    no stages"]);
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_program_that_ends_later_is_named_by_the_next_check() {
    let home = TestHome::new();
    let mut cluster = home.start(Options { pristine: true, ..Options::default() }).unwrap();
    cluster.check().unwrap();
    let etcd = cluster.processes().into_iter().find(|(name, _)| name == "etcd").unwrap().1;
    let etcd = rustix::process::Pid::from_raw(etcd.cast_signed()).unwrap();
    rustix::process::kill_process(etcd, rustix::process::Signal::KILL).unwrap();
    let mut message = String::new();
    crate::support::wait_until("the end to be seen", || {
        message = cluster.check().err().map(|error| error.to_string()).unwrap_or_default();
        !message.is_empty()
    });
    assert_contains_all(
        &message,
        &["etcd ended unexpectedly: signal: killed", "last lines of etcd", "ran out of memory"],
    );
}
