//! Errors of the user: exit code 2 and one line.

use std::process::{Command, Output};

use crate::support::{COMMAND, TestRun, project, root_with, scenario, text};

fn usage_error(output: &Output) -> String {
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert_eq!(text(&output.stdout), "");
    printed.trim_end().trim_start_matches("sindri-conformance: ").to_owned()
}

#[test]
fn an_unknown_or_unsupported_provider_is_rejected() {
    let run = TestRun::new();
    let message = usage_error(&run.run(&["run", "--cluster", "minikube"]));
    assert_eq!(message, "--cluster takes sim, local, container, kind, kubeconfig, not \"minikube\"");
    let message = usage_error(&run.run(&["run", "--cluster", "kubeconfig"]));
    assert_eq!(
        message,
        "--cluster kubeconfig: scenarios and benchmarks need clusters that are not used for anything else"
    );
}

#[test]
fn a_missing_binary_is_named_with_the_command_that_builds_it() {
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("sindri-conformance");
    std::fs::copy(COMMAND, &copy).unwrap();
    let root = root_with(&scenario(""));
    let suite = Command::new(&copy).args(["run", "--root"]).arg(root.path()).output().unwrap();
    let demo = Command::new(&copy).args(["demo", "--root"]).arg(project()).output().unwrap();
    for output in [suite, demo] {
        let message = usage_error(&output);
        assert!(message.starts_with("sindri-broker is not in "), "{message}");
        assert!(message.ends_with("build it with `cargo build --release -p sindri-broker`"), "{message}");
    }
}

#[test]
fn an_invalid_scenario_is_named_with_its_line() {
    let run = TestRun::new();
    let root = root_with(&scenario("  - kill: west\n"));
    let message = usage_error(&run.run(&["run", "--root", root.path().to_str().unwrap()]));
    assert_eq!(message, "scenarios/shop.yaml:8: the fleet has no host \"west\"");
}

#[test]
fn a_directory_without_scenarios_is_named() {
    let (run, empty) = (TestRun::new(), tempfile::tempdir().unwrap());
    let root = empty.path().to_str().unwrap();
    let message = usage_error(&run.run(&["run", "--root", root]));
    assert!(message.starts_with(&format!("{root}/scenarios:1: No such file")), "{message}");
    let message = usage_error(&run.run(&["demo", "--root", root]));
    assert!(message.contains("fixtures/bundles/shop-v1.yaml does not exist"), "{message}");
}

#[test]
fn a_filter_without_matches_and_an_unwritable_file_are_rejected_before_anything_starts() {
    let run = TestRun::new();
    let root = root_with(&scenario(""));
    let root = root.path().to_str().unwrap();
    let message = usage_error(&run.run(&["run", "--root", root, "--filter", "dragons"]));
    assert!(message.ends_with("that is marked real: true has \"dragons\" in its name or title"), "{message}");
    let message = usage_error(&run.run(&["run", "--root", root, "--json", "/nowhere/result.json"]));
    assert!(message.starts_with("/nowhere/result.json cannot be written: "), "{message}");
}
