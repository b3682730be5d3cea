//! The file with the agent's key: whose it may be, and what is said when it is no good.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{agent, mistake};

/// What the agent says about a file with this content and these permissions. There is no cluster: a key that is good is
/// followed by a complaint about that.
fn said(path: &Path, content: &str, mode: u32) -> String {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    run(path)
}

fn run(path: &Path) -> String {
    let mut command = agent();
    command.args(["--name", "east", "--cluster", "demo", "--broker", "http://127.0.0.1:1", "--pak-file"]).arg(path);
    mistake(&command.output().unwrap())
}

#[test]
fn a_key_file_is_taken_from_its_owner_and_group_and_refused_when_it_is_open_to_everybody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    for mode in [0o600, 0o400, 0o440] {
        assert!(said(&path, "brokkr_BRa_hidden\n", mode).contains("no kubeconfig was named"), "{mode:o}");
        std::fs::remove_file(&path).unwrap();
    }
    let words = said(&path, "brokkr_BRa_hidden\n", 0o644);
    assert!(words.contains("key is open to everybody (mode 0644): chmod 600 it"), "{words}");
    assert!(!words.contains("hidden"));
}

#[test]
fn a_key_file_without_a_key_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    assert!(run(&path).contains("key: No such file"));
    assert!(said(&path, " \n", 0o600).contains("holds no key"));
    let words = said(&path, "hid\nden", 0o600);
    assert!(words.contains("the key is not an access key") && !words.contains("hid"), "{words}");
}

#[test]
fn a_key_and_a_key_file_contradict_each_other() {
    let mut command = agent();
    let output = command.env("SINDRI__AGENT__PAK", "brokkr_BRa_hidden").args(["--pak-file", "key"]).output().unwrap();
    assert_eq!(mistake(&output), "sindri-agent: agent.pak and agent.pak_file are both set: one of them at most");
}
