//! The command `sindri-sim`: its output, its exit codes, and its messages about mistakes.

use std::path::{Path, PathBuf};
use std::process::Command;

use sindri_world::scenario::Library;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates a project with one scenario.
fn project_with(scenario: &str) -> tempfile::TempDir {
    project_with_files(&[("scenario.yaml", scenario)])
}

/// Creates a project with these scenario files.
fn project_with_files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("scenarios")).unwrap();
    std::fs::create_dir_all(root.path().join("fixtures/bundles")).unwrap();
    for (name, text) in files {
        let path = root.path().join("scenarios").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

/// Runs the command; returns exit code, standard output and standard error.
fn sim(root: &Path, args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sindri-sim")).args(["sim", "--root"]).arg(root).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Beginning of a scenario file; the steps follow from line 5 on.
const HEAD: &str = "title: t\nproves: []\nfleet: {agents: [east]}\nsteps:\n";

#[test]
fn a_violation_is_printed_with_its_trace_and_the_command_that_replays_it() {
    let scenario = format!("{HEAD}  - check: {{object: {{cluster: east, object: ConfigMap default/missing}}}}\n");
    let root = project_with(&scenario);
    let report = root.path().join("report.json");
    let (code, out, _) = sim(root.path(), &["--seed", "0", "--json", &report.to_string_lossy()]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("scenario with seed 0: expect: ConfigMap default/missing is not in east"), "{out}");
    assert!(out.contains("~ step 1"), "the trace is missing: {out}");
    assert!(out.contains("replay: cargo xtask sim --scenario scenario --seed 0 --trace"), "{out}");
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["violations"][0]["oracle"], "expect");
    assert_eq!(report["runs"], 1);
}

#[test]
fn an_invalid_file_is_rejected_with_its_name_and_line() {
    let cases = [
        ("  - submit: {stack: a, bundle: none.yaml}\n", "scenarios/scenario.yaml:5: bundle none.yaml"),
        ("  - advance: 1s\n  - advance: 10 minutes\n", "scenarios/scenario.yaml:6: "),
        ("  - advance: 1s\n  - kill: north\n", "scenarios/scenario.yaml:6: the fleet has no host \"north\""),
        ("  - jump: 1s\n", "scenarios/scenario.yaml:5: "),
        (
            "  - await: {stack: a}\n",
            "scenarios/scenario.yaml:5: await takes exactly one of applied, gone, failed and condition",
        ),
        ("  - submit: {stack: a, bundel: x}\n", "scenarios/scenario.yaml:5: "),
        ("  - advance: [\n", "scenarios/scenario.yaml:"),
        (
            "  - advance: 1s\n  - repeat: {times: 2, as: n, steps: [{kill: 'x-{n}'}]}\n",
            "scenario.yaml:6: the fleet has no host",
        ),
        (
            "  - repeat: {times: 0, as: n, steps: [{advance: '{n}s'}]}\n",
            "scenario.yaml:5: steps[0]: repeat: times is at least 1",
        ),
        ("  - check: {written: {cluster: east, writes: [remove ConfigMap a]}}\n", "scenario.yaml:5: "),
    ];
    for (steps, expected) in cases {
        let (code, _, err) = sim(project_with(&format!("{HEAD}{steps}")).path(), &[]);
        assert_eq!(code, 2, "{steps}: {err}");
        assert!(err.contains(expected), "{steps}: {err}");
    }
}

#[test]
fn mistakes_of_the_user_end_with_exit_code_2_and_one_line() {
    let unknown = format!("{HEAD}  - delete: {{stack: ghost}}\n");
    let (code, _, err) = sim(project_with(&unknown).path(), &["--seed", "0"]);
    assert_eq!((code, err.trim()), (2, "scenario, step 1: no stack \"ghost\" was submitted before"));
    let (code, _, err) = sim(&project(), &["--scenario", "no-such-scenario"]);
    assert_eq!(code, 2);
    assert!(err.contains("there is no scenario \"no-such-scenario\""), "{err}");
    let (code, _, err) = sim(Path::new("/nonexistent"), &[]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn the_results_of_shards_are_added_up() {
    let (root, results) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for shard in ["1/2", "2/2"] {
        let file = results.path().join(format!("{}.json", &shard[..1]));
        let args = ["--worlds", "3", "--seed", "1", "--shard", shard, "--json", file.to_str().unwrap()];
        assert_eq!(sim(root.path(), &args).0, 0);
    }
    let (code, out, _) = sim(root.path(), &["--merge", results.path().to_str().unwrap()]);
    assert!(code == 0 && out.contains("2 files: 3 worlds") && out.contains(" 0 violations"), "{out}");
    let (code, _, err) = sim(root.path(), &["--merge", root.path().to_str().unwrap()]);
    assert!(code == 2 && err.contains("has no JSON files"), "{err}");
}

#[test]
fn a_folder_that_would_prove_nothing_is_a_mistake() {
    let (code, _, err) = sim(project_with_files(&[]).path(), &["--seed", "0"]);
    assert!(code == 2 && err.contains("there is no scenario"), "{err}");
    let (code, _, err) = sim(project_with_files(&[("one.yaml", HEAD), ("two.yml", HEAD)]).path(), &["--seed", "0"]);
    assert!(code == 2 && err.contains("two.yml is not a scenario"), "{err}");
    for check in ["object: Servce shop/web", "object: Deployment shop/web"] {
        let scenario = format!("{HEAD}  - check: {{absent: {{cluster: east, {check}}}}}\n");
        let (code, _, err) = sim(project_with(&scenario).path(), &["--seed", "0"]);
        assert!(code == 2 && err.contains("is not a kind of the core group"), "{err}");
    }
    let scenario = format!("{HEAD}  - check: {{unwritten: {{cluster: east, writes: [delete Deployment shop/web]}}}}\n");
    let (code, _, err) = sim(project_with(&scenario).path(), &["--seed", "0"]);
    assert!(code == 2 && err.contains("write GROUP/Deployment"), "{err}");
}

#[test]
fn every_behaviour_is_proved_by_a_scenario_or_a_test() {
    let page = std::fs::read_to_string(project().join("docs/behaviours.md")).unwrap();
    let (specification, tests) = page.split_once("## Proved by tests").expect("the page lists tests");
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(area, number)| {
            ["GUIDE", "LOOP", "OPER", "HEAL", "LEAK", "FIELD", "OPS", "BROKER"].contains(&area) && number.len() == 2
        })
    };
    let id_of = |line: &'_ str| line.strip_prefix("| ")?.split(' ').next().filter(is_id).map(str::to_owned);
    let known: Vec<String> = specification.lines().filter_map(id_of).collect();
    assert_eq!(known.len(), 102, "the specification lost or gained a line");
    let library = Library::read(&project()).unwrap();
    let mut proved: Vec<String> = library.scenarios.iter().flat_map(|scenario| scenario.proves.clone()).collect();
    for line in tests.lines().filter(|line| id_of(line).is_some()) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let source = std::fs::read_to_string(project().join(cells[3])).unwrap_or_default();
        assert!(source.contains(&format!("fn {}(", cells[2])), "{} has no test {}", cells[3], cells[2]);
        proved.extend(id_of(line));
    }
    for id in &proved {
        assert!(known.contains(id), "{id} is not in the specification");
    }
    let unproved: Vec<&String> = known.iter().filter(|id| !proved.contains(id)).collect();
    assert!(unproved.is_empty(), "nothing proves {unproved:?}");
}

#[test]
fn a_name_in_two_folders_is_an_error_that_names_both_files() {
    let scenario = format!("{HEAD}  - advance: 1s\n");
    let root = project_with_files(&[("guide/same.yaml", &scenario), ("loop/same.yaml", &scenario)]);
    let (code, _, err) = sim(root.path(), &[]);
    let expected = "scenarios/loop/same.yaml:1: the name \"same\" is taken by scenarios/guide/same.yaml";
    assert_eq!((code, err.trim()), (2, expected));
}

#[test]
fn a_panic_in_a_host_is_a_violation_of_exactly_that_run() {
    let fragile = "title: t\nproves: []\nfleet: {agents: [east], clocks_ahead: 99999999h}\nsteps: [advance: 1m]\n";
    let sturdy = format!("{HEAD}  - advance: 1m\n");
    for engine in ["fast", "turmoil"] {
        let root = project_with_files(&[("fragile.yaml", fragile), ("sturdy.yaml", &sturdy)]);
        let report = root.path().join("report.json");
        let (code, out, _) =
            sim(root.path(), &["--seeds", "2", "--engine", engine, "--json", &report.to_string_lossy()]);
        assert_eq!(code, 1, "{engine}: {out}");
        let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
        assert_eq!(report["runs"], 4, "{engine}: {report}");
        let violations = report["violations"].as_array().unwrap();
        assert_eq!(violations.len(), 2, "{engine}: {report}");
        for (seed, violation) in violations.iter().enumerate() {
            assert_eq!(violation["scenario"], "fragile", "{engine}: {violation}");
            assert_eq!(violation["seed"], seed, "{engine}: {violation}");
            assert_eq!(violation["oracle"], "no-panic", "{engine}: {violation}");
            assert!(violation["message"].as_str().unwrap().starts_with("host east panicked at "), "{violation}");
            let replay = format!("cargo xtask sim --scenario fragile --seed {seed}");
            assert!(violation["replay"].as_str().unwrap().starts_with(&replay), "{engine}: {violation}");
        }
    }
}
