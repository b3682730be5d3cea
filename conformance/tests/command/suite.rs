//! `run`: the project's own stories, and how cases that do not pass are told.

use serde_json::Value;

use crate::support::{Place, root_with, story, text};

#[test]
fn the_projects_stories_pass_on_the_simulated_cluster() {
    let place = Place::new();
    let output = place.run(&["run", "--cluster", "sim"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let passed = said.lines().filter(|line| line.starts_with("passed ")).count();
    assert!(passed >= 4, "{said}");
    assert!(said.ends_with(&format!("{passed} passed, 0 failed\n")), "{said}");
    place.assert_left_clean();
}

#[test]
fn a_story_for_another_stage_is_not_runnable_and_never_passes() {
    let place = Place::new();
    let root = root_with(&story("expect:\n  - unwritten: {cluster: east, writes: [delete Namespace shop]}\n"));
    let (json, junit) = (root.path().join("result.json"), root.path().join("result.xml"));
    let paths = [&json, &junit, &root.path().to_owned()].map(|path| path.to_str().unwrap().to_owned());
    let output = place.run(&["run", "--json", &paths[0], "--junit", &paths[1], "--root", &paths[2]]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("1 story on cluster sim (no --cluster was given)\nnot-runnable "), "{said}");
    assert!(said.ends_with("    this stage cannot tell what an agent wrote\n0 passed, 1 failed\n"), "{said}");
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(result["provider"], "sim");
    assert_eq!(result["cases"][0]["name"], "story");
    assert_eq!(result["cases"][0]["result"], "not-runnable");
    assert!(std::fs::read_to_string(junit).unwrap().contains("<failure type=\"not-runnable\""));
    place.assert_left_clean();
}

#[test]
fn a_cluster_that_cannot_be_had_is_told_apart_from_a_failure() {
    let place = Place::new();
    let root = root_with(&story(""));
    let (json, root) = (root.path().join("result.json"), root.path().to_str().unwrap());
    let mut command = place.command(&["run", "--cluster", "kind", "--json", json.to_str().unwrap(), "--root", root]);
    // Wherever this runs, there is no Docker to be found.
    let output = command.env("PATH", root).env("DOCKER_HOST", "tcp://127.0.0.1:1").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let why = "kind cannot run here: Docker is missing or does not run; install it and start it";
    assert!(text(&output.stdout).ends_with(&format!("    {why}\n")), "{}", text(&output.stdout));
    assert_eq!(text(&output.stderr), format!("sindri-conformance: not run: {why}\n"));
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!((&result["cases"][0]["result"], &result["cases"][0]["reason"]), (&"not-run".into(), &why.into()));
    place.assert_left_clean();
}

#[test]
fn a_failed_case_shows_why_and_what_each_process_said_last() {
    let place = Place::new();
    let root = root_with(&story("expect:\n  - absent: {cluster: east, object: Namespace shop}\n"));
    let output = place.run(&["run", "--root", root.path().to_str().unwrap()]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("\n    expect: Namespace shop is in east and should not be\n"), "{said}");
    for name in ["broker", "east"] {
        assert!(said.contains(&format!("\n  last lines of {name}:\n")), "{said}");
    }
    place.assert_left_clean();
}

#[test]
fn the_broker_and_an_agent_are_really_killed_and_come_back() {
    let place = Place::new();
    let root = root_with(&story(
        "  - kill: east\n  - kill: broker\n  - restart: broker\n  - submit: {stack: shop, bundle: shop-v2.yaml}\n  \
         - restart: east\n  - await: {stack: shop, applied: 2}\n  - kill: broker\n  \
         - edit: {cluster: east, object: ConfigMap shop/settings, merge: {data: {colour: pink}}}\n",
    ));
    let output = place.run(&["run", "--root", root.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    place.assert_left_clean();
}

#[test]
fn the_list_starts_nothing() {
    let place = Place::new();
    let root = root_with(&story(""));
    let output = place.run(&["run", "--list", "--root", root.path().to_str().unwrap()]);
    assert_eq!(text(&output.stdout), "story  GUIDE-01  a story\n");
}
