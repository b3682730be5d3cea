//! The file with the agent's access key: required permissions, and error messages.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{agent, error_line};

/// Returns the error line for a file with this content and these permissions. A good key leads to the error that no cluster
/// is configured.
fn run_with_file(path: &Path, content: &str, mode: u32) -> String {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    run(path)
}

fn run(path: &Path) -> String {
    let mut command = agent();
    command.args(["--name", "east", "--cluster", "demo", "--broker", "http://127.0.0.1:1", "--pak-file"]).arg(path);
    error_line(&command.output().unwrap())
}

#[test]
fn a_key_file_is_rejected_if_other_users_can_access_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    for mode in [0o600, 0o400, 0o440] {
        assert!(run_with_file(&path, "brokkr_BRa_hidden\n", mode).contains("no kubeconfig is set"), "{mode:o}");
        std::fs::remove_file(&path).unwrap();
    }
    let line = run_with_file(&path, "brokkr_BRa_hidden\n", 0o644);
    assert!(line.contains("key is accessible to other users (mode 0644): run chmod 600 on it"), "{line}");
    assert!(!line.contains("hidden"));
}

#[test]
fn a_key_file_without_a_key_gives_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    assert!(run(&path).contains("key: No such file"));
    assert!(run_with_file(&path, " \n", 0o600).contains("holds no key"));
    let line = run_with_file(&path, "hid\nden", 0o600);
    assert!(line.contains("characters that are not allowed in an HTTP header") && !line.contains("hid"), "{line}");
}

#[test]
fn a_key_and_a_key_file_exclude_each_other() {
    let mut command = agent();
    let output = command.env("SINDRI__AGENT__PAK", "brokkr_BRa_hidden").args(["--pak-file", "key"]).output().unwrap();
    assert_eq!(error_line(&output), "sindri-agent: agent.pak and agent.pak_file are both set: set at most one of them");
}
