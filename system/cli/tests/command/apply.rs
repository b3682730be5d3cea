//! `sindri apply`, `history` and `rollback`.

use std::io::Write;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, command, expect_failure, parse_cells, run_sindri};

fn spawn(broker: &Broker, arguments: &[&str]) -> Child {
    let mut command = command(&broker.address, &broker.key_path(), arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn with_name(name: &str) -> String {
    BUNDLE.replace("name: a", &format!("name: {name}"))
}

#[test]
fn unchanged_content_is_not_submitted_again_unless_forced() {
    let broker = Broker::start();
    let file = broker.write_file("web.yaml", BUNDLE);
    let apply =
        |more: &[&str]| broker.run_successfully(&[&["apply", "web", "-f", file.to_str().unwrap()], more].concat());
    assert!(
        broker.expect_usage_error(&["apply", "web", "-f", file.to_str().unwrap()]).contains("there is no stack web")
    );
    let created = apply(&["--create"]);
    let created = created.lines().last().unwrap();
    assert!(created.starts_with("stack web is at revision 1, sequence ") && created.ends_with(", with 1 object"));
    assert_eq!(apply(&["--create"]), format!("{}\n", created.replace("is at", "is unchanged at")));
    assert!(apply(&["--force"]).starts_with("stack web is at revision 2, sequence "));
    let document: Value = serde_json::from_str(&apply(&["-o", "json"])).unwrap();
    assert_eq!((&document["changed"], &document["revision"]["number"]), (&false.into(), &2.into()));
}

#[test]
fn files_directories_and_standard_input_are_one_bundle() {
    let broker = Broker::start();
    let directory = broker.directory.path().join("bundle");
    std::fs::create_dir_all(directory.join("below")).unwrap();
    for (name, text) in
        [("b.yml", with_name("two")), ("a.yaml", with_name("one")), ("below/c.yaml", with_name("three"))]
    {
        std::fs::write(directory.join(name), text).unwrap();
    }
    let directory = directory.to_str().unwrap();
    assert!(broker.run_successfully(&["apply", "web", "--create", "-f", directory]).ends_with("with 2 objects\n"));
    assert!(broker.run_successfully(&["apply", "web", "-R", "-f", directory]).ends_with("with 3 objects\n"));
    let mut process = spawn(&broker, &["apply", "web", "-f", directory, "-f", "-"]);
    process.stdin.take().unwrap().write_all(with_name("four").as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("with 3 objects\n"), "{output:?}");
    let same = broker.expect_usage_error(&["apply", "web", "-f", directory, "-f", directory]);
    assert!(same.contains("a.yaml: ConfigMap b/one is declared in ") && same.ends_with("b.yml too"), "{same}");
}

#[test]
fn a_wait_ends_when_the_stack_is_ready_has_failed_or_the_time_is_over() {
    let broker = Broker::start();
    let agent = Agent::active(&broker, "east", "prod");
    broker.run_successfully(&["agent", "label", "east", "edge"]);
    let apply = |name: &str, more: &[&str]| {
        let file = broker.write_file(&format!("{name}.yaml"), &with_name(name));
        spawn(&broker, &[&["apply", "web", "--wait", "-f", file.to_str().unwrap()], more].concat())
    };
    let untargeted = apply("one", &["--create"]).wait_with_output().unwrap();
    assert!(expect_failure(&untargeted, 1).contains("stack web is not targeted at any cluster"));
    broker.run_successfully(&["generator", "register", "default", "east"]);
    let late = apply("two", &["--target-label", "edge", "--timeout", "1s"]).wait_with_output().unwrap();
    let late = expect_failure(&late, 4);
    assert!(late.contains("stack web is not ready after 1s: prod (Pending)"), "{late}");
    let sequence = agent.report_conditions(0, &["+Applied", "+Ready"]);
    let ready = apply("three", &[]);
    let sequence = agent.report_conditions(sequence, &["+Applied", "+Ready"]);
    let ready = ready.wait_with_output().unwrap();
    assert!(ready.status.success(), "{ready:?}");
    assert!(String::from_utf8_lossy(&ready.stderr).ends_with("web on prod: Ready\n"), "{ready:?}");
    let failed = apply("four", &[]);
    agent.report_conditions(sequence, &["-Applied Failed no room"]);
    let failed = expect_failure(&failed.wait_with_output().unwrap(), 1);
    assert!(failed.ends_with("sindri: stack web has failed on prod (Failed: no room)"), "{failed}");
}

#[test]
fn a_rollback_submits_the_content_of_an_earlier_revision() {
    let broker = Broker::start();
    for name in ["one", "two"] {
        let file = broker.write_file("web.yaml", &with_name(name));
        broker.run_successfully(&["apply", "web", "--create", "-f", file.to_str().unwrap()]);
    }
    let back = broker.run_successfully(&["rollback", "web"]);
    assert!(
        back.starts_with("stack web is at revision 3, sequence ") && back.ends_with("with the content of revision 1\n"),
        "{back}"
    );
    let history = broker.run_successfully(&["history", "web"]);
    let rows = parse_cells(&history);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["3", "2", "1"]);
    assert_eq!((rows[0][4], rows[0][5]), (rows[2][4], "bundle"));
    assert!(broker.run_successfully(&["rollback", "web", "--to", "1"]).contains("is unchanged at revision 3"));
    assert!(broker.run_successfully(&["rollback", "web", "--to", "2"]).contains("is at revision 4"));
    let missing = broker.expect_usage_error(&["rollback", "web", "--to", "9"]);
    assert_eq!(missing, "sindri: stack web has no revision 9; sindri history web lists them");
}

/// Returns the document of a command that waits, and its exit code.
fn end(process: Child) -> (Value, i32) {
    let output = process.wait_with_output().unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (document, output.status.code().unwrap())
}

#[test]
fn a_wait_as_json_has_the_result_and_the_states_of_the_targeted_clusters() {
    let broker = Broker::start();
    let (east, west) = (Agent::active(&broker, "east", "prod"), Agent::active(&broker, "west", "far"));
    let apply = |name: &str, more: &[&str]| {
        let file = broker.write_file(&format!("{name}.yaml"), &with_name(name));
        let arguments = ["apply", "web", "--wait", "-o", "json", "-f", file.to_str().unwrap()];
        spawn(&broker, &[&arguments[..], more].concat())
    };
    let first = apply("one", &["--create", "--target", "east", "--target", "west"]);
    let sequence = east.report_conditions(0, &["+Applied", "+Ready"]);
    west.report_conditions(0, &["+Applied", "+Ready"]);
    let (document, code) = end(first);
    assert_eq!((&document["result"], code), (&"ready".into(), 0));
    assert_eq!(document["clusters"][0]["state"], "Ready");
    assert_eq!((&document["changed"], &document["revision"]["number"]), (&true.into(), &1.into()));

    // The agent of a cluster that must remove the stack is gone.
    broker.run_successfully(&["untarget", "web", "west"]);
    broker.run_successfully(&["agent", "deactivate", "west"]);
    // Drift that is only detected stays.
    let second = apply("two", &[]);
    let sequence = east.report_conditions(sequence, &["+Applied", "+Ready", "+Drifted ComesBack ConfigMap b/a"]);
    let (document, code) = end(second);
    assert_eq!((&document["result"], code), (&"ready".into(), 0), "{document}");
    let clusters = document["clusters"].as_array().unwrap();
    assert_eq!(
        (clusters.len(), &clusters[0]["cluster"], &clusters[0]["state"]),
        (1, &"prod".into(), &"Drifted".into())
    );

    let failed = apply("three", &[]);
    let sequence = east.report_conditions(sequence, &["-Applied Failed no room"]);
    let (document, code) = end(failed);
    assert_eq!((&document["result"], code), (&"failed".into(), 1));
    assert_eq!(document["clusters"][0]["message"], "no room");

    let replaced = apply("four", &[]);
    let sequence = east.report_conditions(sequence, &["-Applied Progressing"]);
    let file = broker.write_file("five.yaml", &with_name("five"));
    broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    east.report_conditions(sequence, &["+Applied", "+Ready"]);
    let output = replaced.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["result"], "replaced");
    assert!(expect_failure(&output, 3).ends_with("stack web was replaced by revision 5 before the wait was over"));
    let (document, code) = end(apply("six", &["--timeout", "0s"]));
    assert_eq!((&document["result"], code), (&"timed_out".into(), 4));
}

#[test]
fn a_stack_is_assigned_only_after_its_submission_was_accepted() {
    let broker = Broker::start_with(&["--quotas-revision-bytes", "200"]);
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let key = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--agent", "east", "--new-key-file", key.to_str().unwrap()]);
    let (small, large) = (broker.write_file("small.yaml", BUNDLE), with_name(&"a".repeat(200)));
    let large = broker.write_file("large.yaml", &large);
    let apply = |file: &std::path::Path, more: &[&str]| {
        let arguments = [&["apply", "web", "-f", file.to_str().unwrap()], more].concat();
        run_sindri(&broker.address, &key, &arguments)
    };
    let assigned = || {
        let status: Value = serde_json::from_str(&broker.run_successfully(&["status", "-o", "json"])).unwrap();
        status["stacks"][0]["assignments"].as_array().unwrap().len()
    };
    assert!(apply(&small, &["--create"]).status.success());
    let refused = expect_failure(&apply(&large, &["--target", "east"]), 2);
    assert!(refused.contains("quotas.revision_bytes"), "{refused}");
    assert_eq!(assigned(), 0, "the cluster does not get the revision before");
    for wrong in [["--target", "west"], ["--target-label", "two words"]] {
        expect_failure(&apply(&small, &[&["--force"], &wrong[..]].concat()), 2);
    }
    assert_eq!(parse_cells(&broker.run_successfully(&["history", "web"])).len(), 1, "nothing was submitted");
    assert!(apply(&small, &["--target", "east"]).status.success());
    assert_eq!(assigned(), 1, "unchanged content is assigned too");
}

#[test]
fn a_wait_that_fails_after_the_submission_is_not_invalid_usage() {
    let broker = Broker::start();
    let _agent = Agent::active(&broker, "east", "prod");
    let key = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--agent", "east", "--new-key-file", key.to_str().unwrap()]);
    let file = broker.write_file("web.yaml", BUNDLE);
    let apply = ["apply", "web", "--create", "--target", "east", "-f", file.to_str().unwrap(), "--wait", "-o", "json"];
    let mut command = command(&broker.address, &key, &apply);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = String::new();
    let mut lines = std::io::BufReader::new(process.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut progress).unwrap();
    assert!(progress.starts_with("web on prod: Pending"), "{progress}");
    broker.run_successfully(&["generator", "rotate-key", "ci"]);
    std::io::Read::read_to_string(&mut lines, &mut progress).unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{progress}");
    assert!(progress.contains("sindri: the submission is stored, but: cannot "), "{progress}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["changed"], &document["result"]), (&true.into(), &"unknown".into()));
}

#[test]
fn a_timeout_is_checked_before_the_submission() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    let file = broker.write_file("web.yaml", BUNDLE);
    for timeout in ["-5s", "8d", "9223372036854775807s", "soon"] {
        let timeout = format!("--timeout={timeout}");
        let refused = broker.expect_usage_error(&["apply", "web", "-f", file.to_str().unwrap(), "--wait", &timeout]);
        assert!(refused.contains("it is not a duration such as 90s"), "{refused}");
    }
    assert_eq!(parse_cells(&broker.run_successfully(&["history", "web"])).len(), 0, "nothing was submitted");
}

#[test]
fn files_with_a_mark_or_without_a_line_break_are_joined_without_a_change() {
    let broker = Broker::start();
    let kept = format!("{BUNDLE}data:\n  x: |+\n    line\n");
    let first = broker.write_file("first.yaml", &kept);
    let second = broker.write_file("second.yaml", &format!("\u{feff}{}", with_name("c")));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    broker.run_successfully(&["apply", "web", "--create", "-f", first, "-f", second]);
    let document = broker.run_successfully(&["history", "web", "-o", "json"]);
    let revision: Vec<Value> = serde_json::from_str(&document).unwrap();
    assert_eq!(revision[0]["yaml_checksum"], checksum(&format!("{kept}---\n{}", with_name("c"))));
}

/// Returns the checksum of a revision with this text.
fn checksum(text: &str) -> Value {
    serde_json::to_value(sindri_model::Checksum::compute(text)).unwrap()
}

#[test]
fn a_wait_for_an_inactive_agent_says_once_how_it_becomes_active() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let file = broker.write_file("web.yaml", BUNDLE);
    let apply =
        ["apply", "web", "--create", "--target", "east", "--wait", "--timeout", "2s", "-f", file.to_str().unwrap()];
    let late = expect_failure(&broker.run(&apply), 4);
    let note = "note: agent east is inactive and changes nothing: sindri agent activate east\n";
    assert_eq!(late.matches(note).count(), 1, "{late}");
}
