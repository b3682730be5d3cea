//! The command `record`.

use std::process::{Command, Output};

use crate::root;

const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-record");

fn record(arguments: &[&str]) -> Output {
    Command::new(COMMAND).arg("record").arg("--root").arg(root()).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn errors_of_the_user_are_reported_in_one_line_with_exit_code_2() {
    let cases: [(&[&str], &str); 3] = [
        (&["--cluster", "sim"], "recordings are made with --cluster local, not sim"),
        (&["--cluster", "local", "--filter", "no-such-exchange"], "no exchange has \"no-such-exchange\" in its name"),
        (&["--cluster", "local", "--version", "1.2"], "Kubernetes \"1.2\" is not pinned here"),
    ];
    for (arguments, message) in cases {
        let output = record(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        assert!(printed(&output).contains(message), "{}", printed(&output));
    }
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn the_stored_recording_equals_that_of_a_live_cluster() {
    let output = record(&["--cluster", "local", "--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_check_prints_the_differences_and_changes_nothing() {
    let root_directory = tempfile::tempdir().unwrap();
    let scripts = root_directory.path().join("conformance/record/exchanges");
    std::fs::create_dir_all(&scripts).unwrap();
    std::fs::copy(root().join("conformance/record/exchanges/apply-sets.yaml"), scripts.join("apply-sets.yaml"))
        .unwrap();
    let stored = root_directory.path().join("fixtures/kubernetes/1.35/exchanges/apply-sets.json");
    std::fs::create_dir_all(stored.parent().unwrap()).unwrap();
    std::fs::write(&stored, "{}\n").unwrap();
    let check = ["record", "--cluster", "local", "--check", "--filter", "apply-sets", "--root"];
    let output = Command::new(COMMAND).args(check).arg(root_directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains("exchanges/apply-sets.json\n    line 1:\n    - {}\n"), "{}", printed(&output));
    assert_eq!(std::fs::read_to_string(&stored).unwrap(), "{}\n");
}
