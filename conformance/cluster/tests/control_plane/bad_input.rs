//! What can go wrong: each ends with the last lines of the right log and what to do.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use sindri_cluster::binaries::Manifest;
use sindri_cluster::{Container, Home, Local, Options, Provider};

use crate::support::{COMMAND, Place, refusal, text};

fn assert_helpful(words: &str, parts: &[&str]) {
    for part in parts {
        assert!(words.contains(part), "{part:?} is missing in:\n{words}");
    }
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_port_that_is_taken_is_named() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let words = refusal(place.start(Options { port: Some(port), ..Options::default() }));
    assert_eq!(
        words,
        format!("port {port} of 127.0.0.1 is taken\n  what to do: choose another port, or none to get a free one")
    );
    place.assert_left_clean();
    let options = Options { port: Some(port), directory: Some(place.path().join("cluster")), ..Options::default() };
    let words = refusal(Container::new(Home::of_user()).start(&options));
    assert!(words.contains("is taken") || words.contains("no container engine answers"), "{words}");
    place.assert_left_clean();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn two_clusters_do_not_share_a_port_that_was_asked_for() {
    let (place, other) = (Place::new(), Place::new());
    let pristine = Options { pristine: true, ..Options::default() };
    let first = place.start(pristine.clone()).unwrap();
    let port = first.access().server.rsplit(':').next().unwrap().parse().ok();
    assert!(refusal(other.start(Options { port, ..pristine.clone() })).contains("is taken"));
    drop(first);
    // And it is free again afterwards.
    other.start(Options { port, ..pristine }).unwrap();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_full_disk_is_told_from_other_trouble() {
    let place = Place::new();
    std::fs::create_dir_all(place.home().clusters()).unwrap();
    let clusters = place.home().clusters();
    let script = r#"mount -t tmpfs -o size=8m full "$1" && exec "$2" hold --cluster local"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&clusters).arg(COMMAND);
    place.inhabit(&mut command);
    let mut held = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its leash, held until it has ended by itself.
    let leash = held.stdin.take();
    let output = held.wait_with_output().unwrap();
    drop(leash);
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert_helpful(
        &words,
        &["no space left on device", "last lines of etcd", "what to do: the disk is full: make room"],
    );
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_full_disk_during_a_build_is_told_too() {
    let place = Place::without_cache();
    let script = r#"mount -t tmpfs -o size=40m full "$1" && exec "$2" build"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(place.home().path()).arg(COMMAND);
    place.inhabit(&mut command);
    let output = command.output().unwrap();
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert_helpful(&words, &["could not be built", "no space left on device", "what to do: the disk is full"]);
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
    let place = Place::with_copied_cache();
    replace(&place.entry_with(program, ""), program, script);
    if program != "kwok" {
        // The entry of the version that is used.
        replace(&place.entry_with(program, "v1.35.4"), program, script);
    }
    let options = Options { directory: Some(place.path().join("cluster")), ..Options::default() };
    let words = refusal(Local::new(place.home()).start(&options));
    place.assert_left_clean();
    words
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_program_that_crashes_at_its_start_is_named_with_its_last_words() {
    let words = start_with("kube-apiserver", "#!/bin/sh\necho first\necho boom >&2\nexit 7\n");
    assert_helpful(
        &words,
        &["kube-apiserver ended by itself: exit status 7", "last lines of kube-apiserver", "    boom"],
    );
    assert_helpful(&words, &["what to do: start it with --keep"]);
    let words = start_with("kwok", "#!/bin/sh\necho no stages\nexit 3\n");
    assert_helpful(&words, &["kwok ended by itself: exit status 3", "last lines of kwok", "    no stages"]);
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_program_that_ends_later_is_named_when_one_looks() {
    let place = Place::new();
    let mut cluster = place.start(Options { pristine: true, ..Options::default() }).unwrap();
    cluster.check().unwrap();
    let etcd = cluster.processes().into_iter().find(|(name, _)| name == "etcd").unwrap().1;
    let etcd = rustix::process::Pid::from_raw(etcd.cast_signed()).unwrap();
    rustix::process::kill_process(etcd, rustix::process::Signal::KILL).unwrap();
    let mut words = String::new();
    crate::support::until("the end to be seen", || {
        words = cluster.check().err().map(|error| error.to_string()).unwrap_or_default();
        !words.is_empty()
    });
    assert_helpful(&words, &["etcd ended by itself: signal: killed", "last lines of etcd", "ran out of memory"]);
}
