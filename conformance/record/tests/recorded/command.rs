//! The command, as people type it.

use std::process::{Command, Output};

use crate::root;

const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-record");

fn record(arguments: &[&str]) -> Output {
    Command::new(COMMAND).arg("record").arg("--root").arg(root()).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn mistakes_are_told_in_one_line_with_the_code_for_mistakes() {
    let cases: [(&[&str], &str); 3] = [
        (&["--cluster", "sim"], "recordings are made with --cluster local, not sim"),
        (&["--cluster", "local", "--filter", "no-such-exchange"], "no exchange has \"no-such-exchange\" in its name"),
        (&["--cluster", "local", "--version", "1.2"], "Kubernetes \"1.2\" is not pinned here"),
    ];
    for (arguments, words) in cases {
        let output = record(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn everything_that_is_kept_is_what_a_live_cluster_says() {
    let output = record(&["--cluster", "local", "--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_check_says_what_differs_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let scripts = place.path().join("conformance/record/exchanges");
    std::fs::create_dir_all(&scripts).unwrap();
    std::fs::copy(root().join("conformance/record/exchanges/apply-sets.yaml"), scripts.join("apply-sets.yaml"))
        .unwrap();
    let kept = place.path().join("fixtures/kubernetes/1.35/exchanges/apply-sets.json");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, "{}\n").unwrap();
    let check = ["record", "--cluster", "local", "--check", "--filter", "apply-sets", "--root"];
    let output = Command::new(COMMAND).args(check).arg(place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("exchanges/apply-sets.json\n    line 1:\n    - {}\n"), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "{}\n");
}
