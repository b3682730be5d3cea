//! The command, as people type it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-fidelity");

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn fidelity(root: &Path, arguments: &[&str]) -> Output {
    let recorded = if arguments.contains(&"--filter") { [].as_slice() } else { &["--sequences", "0"] };
    Command::new(COMMAND).arg("--root").arg(root).args(recorded).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A project with some exchanges only.
fn project(exchanges: &[&str], known: &str, waivers: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let copy = |directory: &str, end: &str| {
        std::fs::create_dir_all(place.path().join(directory)).unwrap();
        for name in exchanges {
            let file = format!("{directory}/{name}.{end}");
            std::fs::copy(root().join(&file), place.path().join(&file)).unwrap();
        }
    };
    copy("conformance/record/exchanges", "yaml");
    copy("fixtures/kubernetes/1.35/exchanges", "json");
    let lists = place.path().join("conformance/fidelity");
    std::fs::create_dir_all(&lists).unwrap();
    std::fs::write(lists.join("known-differences"), known).unwrap();
    std::fs::write(lists.join("waivers"), waivers).unwrap();
    place
}

#[test]
fn exactly_the_known_steps_differ_and_the_totals_are_written() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("totals.json");
    let output = fidelity(root(), &["--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let totals: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(totals["sequences"].as_u64().unwrap() > 80 && totals["requests"].as_u64().unwrap() > 1_000, "{totals}");
    assert!(totals["differences"].as_u64().unwrap() < totals["requests"].as_u64().unwrap() / 10, "{totals}");
}

#[test]
fn a_difference_that_nobody_expected_is_shown_side_by_side() {
    let place = project(&["apply-sets"], "", "");
    let record = place.path().join("fixtures/kubernetes/1.35/exchanges/apply-sets.json");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("\"status\": 201", "\"status\": 299", 1)).unwrap();
    let output = fidelity(place.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let lines = said(&output);
    assert!(lines.contains("at /response/status\n299 "), "{lines}");
    assert!(lines.contains("apply-sets, step 1: differs, and did not before"), "{lines}");
}

#[test]
fn a_waiver_and_a_known_difference_that_no_longer_apply_fail_the_run() {
    let place = project(&["apply-sets"], "apply-sets 1 of old\n", "apply-sets 2 because\n");
    let output = fidelity(place.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("apply-sets, step 1: no longer differs"), "{}", said(&output));
    assert!(said(&output).contains("apply-sets, step 2: the waiver no longer applies"), "{}", said(&output));
    assert_eq!(fidelity(place.path(), &["--update"]).status.code(), Some(0));
    let known = std::fs::read_to_string(place.path().join("conformance/fidelity/known-differences")).unwrap();
    assert!(!known.contains("apply-sets"), "{known}");
}

#[test]
fn mistakes_are_told_in_one_line_with_the_code_for_mistakes() {
    let output = fidelity(root(), &["--filter", "no-such-exchange"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("no exchange has \"no-such-exchange\" in its name"), "{}", said(&output));
}
