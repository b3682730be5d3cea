//! Mistakes of the user: exit code 2 and one line that says what is wrong.

use std::process::{Command, Output};

use crate::support::{COMMAND, Place, project, root_with, story, text};

fn mistake(output: &Output) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(text(&output.stdout), "");
    said.trim_end().trim_start_matches("sindri-conformance: ").to_owned()
}

#[test]
fn a_cluster_that_is_unknown_or_where_the_suite_does_not_run_is_refused() {
    let place = Place::new();
    let words = mistake(&place.run(&["run", "--cluster", "minikube"]));
    assert_eq!(words, "--cluster takes sim, local, container, kind, kubeconfig, not \"minikube\"");
    let words = mistake(&place.run(&["run", "--cluster", "kubeconfig"]));
    assert_eq!(
        words,
        "--cluster kubeconfig: scenarios and benchmarks need clusters that are not used for anything else"
    );
}

#[test]
fn a_missing_binary_is_named_with_the_command_that_makes_it() {
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("sindri-conformance");
    std::fs::copy(COMMAND, &copy).unwrap();
    let root = root_with(&story(""));
    let run = Command::new(&copy).args(["run", "--root"]).arg(root.path()).output().unwrap();
    let demo = Command::new(&copy).args(["demo", "--root"]).arg(project()).output().unwrap();
    for output in [run, demo] {
        let words = mistake(&output);
        assert!(words.starts_with("sindri-broker is not in "), "{words}");
        assert!(words.ends_with("build it with `cargo build --release -p sindri-broker`"), "{words}");
    }
}

#[test]
fn a_story_that_makes_no_sense_is_named_with_its_line() {
    let place = Place::new();
    let root = root_with(&story("  - kill: west\n"));
    let words = mistake(&place.run(&["run", "--root", root.path().to_str().unwrap()]));
    assert_eq!(words, "scenarios/story.yaml:8: the fleet has no host \"west\"");
}

#[test]
fn a_directory_without_stories_is_named() {
    let (place, empty) = (Place::new(), tempfile::tempdir().unwrap());
    let root = empty.path().to_str().unwrap();
    let words = mistake(&place.run(&["run", "--root", root]));
    assert!(words.starts_with(&format!("{root}/scenarios:1: No such file")), "{words}");
    let words = mistake(&place.run(&["demo", "--root", root]));
    assert!(words.contains("fixtures/bundles/shop-v1.yaml is not there"), "{words}");
}

#[test]
fn a_filter_that_fits_nothing_and_a_file_that_cannot_be_written_are_refused_before_anything_starts() {
    let place = Place::new();
    let root = root_with(&story(""));
    let root = root.path().to_str().unwrap();
    let words = mistake(&place.run(&["run", "--root", root, "--filter", "dragons"]));
    assert!(words.ends_with("that is marked real: true has \"dragons\" in its name or title"), "{words}");
    let words = mistake(&place.run(&["run", "--root", root, "--json", "/nowhere/result.json"]));
    assert!(words.starts_with("/nowhere/result.json cannot be written: "), "{words}");
}
