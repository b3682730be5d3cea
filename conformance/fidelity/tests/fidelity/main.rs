//! The command `fidelity`.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

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

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Creates a project directory with some exchanges only.
fn project(exchanges: &[&str], known: &str, waivers: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let copy = |below: &str, suffix: &str| {
        std::fs::create_dir_all(directory.path().join(below)).unwrap();
        for name in exchanges {
            let file = format!("{below}/{name}.{suffix}");
            std::fs::copy(root().join(&file), directory.path().join(&file)).unwrap();
        }
    };
    copy("conformance/record/exchanges", "yaml");
    copy("fixtures/kubernetes/1.35/exchanges", "json");
    let lists = directory.path().join("conformance/fidelity");
    std::fs::create_dir_all(&lists).unwrap();
    std::fs::write(lists.join("known-differences"), known).unwrap();
    std::fs::write(lists.join("waivers"), waivers).unwrap();
    directory
}

#[test]
fn exactly_the_known_steps_differ_and_the_totals_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("totals.json");
    let output = fidelity(root(), &["--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let totals: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(totals["sequences"].as_u64().unwrap() > 80 && totals["requests"].as_u64().unwrap() > 1_000, "{totals}");
    assert!(totals["differences"].as_u64().unwrap() < totals["requests"].as_u64().unwrap() / 10, "{totals}");
}

#[test]
fn an_unexpected_difference_is_shown_side_by_side() {
    let directory = project(&["apply-sets"], "", "");
    let record = directory.path().join("fixtures/kubernetes/1.35/exchanges/apply-sets.json");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("\"status\": 201", "\"status\": 299", 1)).unwrap();
    let output = fidelity(directory.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let lines = printed(&output);
    assert!(lines.contains("at /response/status\n299 "), "{lines}");
    assert!(lines.contains("apply-sets, step 1: differs, and did not before"), "{lines}");
}

#[test]
fn a_waiver_and_a_known_difference_that_no_longer_apply_fail_the_run() {
    let directory = project(&["apply-sets"], "apply-sets 1 of old\n", "apply-sets 2 because\n");
    let output = fidelity(directory.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains("apply-sets, step 1: no longer differs"), "{}", printed(&output));
    assert!(printed(&output).contains("apply-sets, step 2: the waiver no longer applies"), "{}", printed(&output));
    assert_eq!(fidelity(directory.path(), &["--update"]).status.code(), Some(0));
    let known = std::fs::read_to_string(directory.path().join("conformance/fidelity/known-differences")).unwrap();
    assert!(!known.contains("apply-sets"), "{known}");
}

#[test]
fn errors_of_the_user_are_reported_in_one_line_with_exit_code_2() {
    let output = fidelity(root(), &["--filter", "no-such-exchange"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("no exchange has \"no-such-exchange\" in its name"), "{}", printed(&output));
}
