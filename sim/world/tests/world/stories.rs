//! The command as people use it: what it prints, its exit codes, and what it says about mistakes.

use std::path::{Path, PathBuf};
use std::process::Command;

use sindri_world::scenario::Library;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A project of one story.
fn project_with(story: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("scenarios")).unwrap();
    std::fs::create_dir_all(root.path().join("fixtures/bundles")).unwrap();
    std::fs::write(root.path().join("scenarios/story.yaml"), story).unwrap();
    root
}

/// Exit code, standard output and standard error.
fn sim(root: &Path, args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sindri-sim")).args(["sim", "--root"]).arg(root).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const STORY: &str = "title: t\nproves: []\nfleet: {agents: [east]}\nsteps:\n";

#[test]
fn a_failing_oracle_prints_a_sentence_the_trace_and_the_command_that_replays_it() {
    let story = format!("{STORY}  - check: {{object: {{cluster: east, object: ConfigMap default/missing}}}}\n");
    let root = project_with(&story);
    let report = root.path().join("report.json");
    let (code, out, _) = sim(root.path(), &["--seed", "0", "--json", &report.to_string_lossy()]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("story with seed 0: expect: ConfigMap default/missing is not in east"), "{out}");
    assert!(out.contains("~ step 1"), "the trace is missing: {out}");
    assert!(out.contains("replay: cargo xtask sim --scenario story --seed 0 --trace"), "{out}");
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["violations"][0]["oracle"], "expect");
    assert_eq!(report["runs"], 1);
}

#[test]
fn a_broken_file_is_refused_with_its_name_and_line() {
    let cases = [
        ("  - submit: {stack: a, bundle: none.yaml}\n", "story.yaml:5: bundle none.yaml"),
        ("  - advance: 1s\n  - advance: 10 minutes\n", "story.yaml:6: "),
        ("  - advance: 1s\n  - kill: nobody\n", "story.yaml:6: the fleet has no agent \"nobody\""),
        ("  - jump: 1s\n", "story.yaml:5: "),
        ("  - await: {stack: a}\n", "story.yaml:5: await takes exactly one of applied, gone, failed and condition"),
        ("  - submit: {stack: a, bundel: x}\n", "story.yaml:5: "),
        ("  - advance: [\n", "story.yaml:"),
    ];
    for (steps, expected) in cases {
        let (code, _, err) = sim(project_with(&format!("{STORY}{steps}")).path(), &[]);
        assert_eq!(code, 2, "{steps}: {err}");
        assert!(err.contains(expected), "{steps}: {err}");
    }
}

#[test]
fn mistakes_of_the_user_end_with_2_and_one_line() {
    let unknown = format!("{STORY}  - delete: {{stack: ghost}}\n");
    let (code, _, err) = sim(project_with(&unknown).path(), &["--seed", "0"]);
    assert_eq!((code, err.trim()), (2, "story, step 1: no stack \"ghost\" was submitted before"));
    let (code, _, err) = sim(&project(), &["--scenario", "no-such-story"]);
    assert_eq!(code, 2);
    assert!(err.contains("there is no scenario \"no-such-story\""), "{err}");
    let (code, _, err) = sim(Path::new("/nonexistent"), &[]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn every_behaviour_is_proved_by_a_story_or_a_test() {
    let page = std::fs::read_to_string(project().join("docs/behaviours.md")).unwrap();
    let (specification, tests) = page.split_once("## Proved by tests").expect("the page lists tests");
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(area, number)| {
            ["GUIDE", "LOOP", "OPER", "HEAL", "LEAK", "FIELD"].contains(&area) && number.len() == 2
        })
    };
    let id_of = |line: &'_ str| line.strip_prefix("| ")?.split(' ').next().filter(is_id).map(str::to_owned);
    let known: Vec<String> = specification.lines().filter_map(id_of).collect();
    assert_eq!(known.len(), 70, "the specification lost or gained a line");
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
