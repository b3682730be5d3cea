//! `run`: the project's own scenarios, and the report of cases that do not pass.

use serde_json::Value;

use crate::support::{TestRun, root_with, scenario, text};

#[test]
fn the_projects_scenarios_pass_on_the_simulated_cluster() {
    let run = TestRun::new();
    let output = run.run(&["run", "--cluster", "sim", "--jobs", "6"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}{}", text(&output.stderr));
    let passed = printed.lines().filter(|line| line.starts_with("passed ")).count();
    assert!(passed >= 4, "{printed}");
    assert!(printed.ends_with(&format!("{passed} passed, 0 failed\n")), "{printed}");
    run.assert_clean();
}

#[test]
fn a_scenario_that_needs_the_simulation_is_not_runnable_and_never_passes() {
    let run = TestRun::new();
    let root = root_with(&scenario("expect:\n  - unwritten: {cluster: east, writes: [delete Namespace shop]}\n"));
    let (json, junit) = (root.path().join("result.json"), root.path().join("result.xml"));
    let paths = [&json, &junit, &root.path().to_owned()].map(|path| path.to_str().unwrap().to_owned());
    let output = run.run(&["run", "--json", &paths[0], "--junit", &paths[1], "--root", &paths[2]]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.starts_with("1 scenario on cluster sim (default)\nnot-runnable "), "{printed}");
    assert!(
        printed.ends_with("    this environment cannot list the writes of an agent\n0 passed, 1 failed\n"),
        "{printed}"
    );
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(result["provider"], "sim");
    assert_eq!(result["cases"][0]["name"], "shop");
    assert_eq!(result["cases"][0]["result"], "not-runnable");
    assert!(std::fs::read_to_string(junit).unwrap().contains("<failure type=\"not-runnable\""));
    run.assert_clean();
}

#[test]
fn an_unavailable_cluster_is_distinguished_from_a_failure() {
    let run = TestRun::new();
    let root = root_with(&scenario(""));
    let (json, root) = (root.path().join("result.json"), root.path().to_str().unwrap());
    let mut command = run.command(&["run", "--cluster", "kind", "--json", json.to_str().unwrap(), "--root", root]);
    // No Docker is found on any machine.
    let output = command.env("PATH", root).env("DOCKER_HOST", "tcp://127.0.0.1:1").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let why = "kind cannot run here: Docker is missing or does not run; install it and start it";
    assert!(text(&output.stdout).ends_with(&format!("    {why}\n")), "{}", text(&output.stdout));
    assert_eq!(text(&output.stderr), format!("sindri-conformance: not run: {why}\n"));
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!((&result["cases"][0]["result"], &result["cases"][0]["reason"]), (&"not-run".into(), &why.into()));
    run.assert_clean();
}

#[test]
fn a_failed_case_shows_the_reason_and_the_last_lines_of_each_process() {
    let run = TestRun::new();
    let root = root_with(&scenario("expect:\n  - absent: {cluster: east, object: Namespace shop}\n"));
    let output = run.run(&["run", "--root", root.path().to_str().unwrap()]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("\n    expect: Namespace shop exists in east and should not\n"), "{printed}");
    for name in ["broker", "east"] {
        assert!(printed.contains(&format!("\n  last lines of {name}:\n")), "{printed}");
    }
    run.assert_clean();
}

#[test]
fn the_broker_and_an_agent_are_killed_and_restarted() {
    let run = TestRun::new();
    let root = root_with(&scenario(
        "  - kill: east\n  - kill: broker\n  - restart: broker\n  - submit: {stack: shop, bundle: shop-v2.yaml}\n  \
         - restart: east\n  - await: {stack: shop, applied: 2}\n  - kill: broker\n  \
         - edit: {cluster: east, object: ConfigMap shop/settings, merge: {data: {colour: pink}}}\n",
    ));
    let output = run.run(&["run", "--root", root.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    run.assert_clean();
}

#[test]
fn list_starts_nothing() {
    let run = TestRun::new();
    let root = root_with(&scenario(""));
    let output = run.run(&["run", "--list", "--root", root.path().to_str().unwrap()]);
    assert_eq!(text(&output.stdout), "shop  GUIDE-01  a scenario\n");
}
