//! `sindri status` and `sindri events`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use sindri_model::wire::EventStatus;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, command, expect_failure, parse_cells, run_sindri};

#[test]
fn status_has_one_state_for_each_cluster_and_the_cause_below() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let status = || broker.run_successfully(&["status", "web"]);
    assert_eq!(status(), "STACK  REVISION  prod\nweb    1         Pending\n");
    agent.report(EventStatus::Failure, Some("no room\nfor it"));
    assert_eq!(
        status(),
        "STACK  REVISION  prod\nweb    1         Failed\n\nweb Failed on prod: no room for it\n",
        "the outcome counts until conditions follow"
    );
    let wrong = expect_failure(&broker.run(&["status", "--exit-code"]), 1);
    assert_eq!(wrong, "sindri: something is wrong with web");
    let first = agent.report_conditions(0, &["+Applied", "-Ready Progressing 0 of 1 objects are ready"]);
    assert!(status().ends_with("\nweb Progressing on prod: 0 of 1 objects are ready\n"), "{}", status());
    agent.report_conditions(0, &["+Applied", "+Ready"]);
    assert_eq!(status(), "STACK  REVISION  prod\nweb    1         Ready\n");
    broker.run_successfully(&["status", "--exit-code"]);
    let second = broker.write_file("web.yaml", &BUNDLE.replace("name: a", "name: c"));
    broker.run_successfully(&["apply", "web", "-f", second.to_str().unwrap()]);
    assert_eq!(status(), "STACK  REVISION  prod\nweb    2         Pending\n");
    broker.run_successfully(&["stack", "suspend", "web"]);
    assert!(
        status().ends_with("\nweb Suspended on prod: nothing is written: sindri stack resume web\n"),
        "{}",
        status()
    );
    broker.run_successfully(&["stack", "resume", "web"]);
    agent.report_conditions(first, &["+Applied", "+Ready", "+Drifted ComesBack ConfigMap b/a"]);
    assert!(status().ends_with("\nweb Drifted on prod: ConfigMap b/a\n"), "{}", status());
    broker.run_successfully(&["agent", "deactivate", "east"]);
    assert_eq!(
        status(),
        "STACK  REVISION  prod\nweb    2         Inactive\n\nagent east of cluster prod is inactive and changes nothing: \
         sindri agent activate east\n"
    );
}

#[test]
fn a_deleted_stack_stays_until_its_removal_is_confirmed() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    agent.report(EventStatus::Success, None);
    broker.run_successfully(&["delete", "web"]);
    assert_eq!(
        broker.run_successfully(&["status"]),
        "STACK          REVISION  prod\nweb (deleted)  2         Removing\n"
    );
    assert_eq!(parse_cells(&broker.run_successfully(&["status", "web"]))[0], ["web (deleted)", "2", "Removing"]);
    agent.report(EventStatus::Success, None);
    assert_eq!(broker.run_successfully(&["status"]), "");
    assert_eq!(broker.expect_usage_error(&["status", "web"]), "sindri: there is no stack web");
    let events = broker.run_successfully(&["events", "east"]);
    let outcomes: Vec<&str> = parse_cells(&events).iter().map(|row| row[4]).collect();
    assert_eq!(outcomes, ["removed", "applied"], "the newest first");
    let newest = broker.run(&["events", "east", "--limit", "1"]);
    assert!(newest.status.success(), "{newest:?}");
    assert_eq!(parse_cells(&String::from_utf8_lossy(&newest.stdout)).len(), 1);
    let more = String::from_utf8_lossy(&newest.stderr).into_owned();
    assert_eq!(more, "only the newest 1 events are shown: --limit shows more\n");
}

#[test]
fn json_has_exact_times_and_ids() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    agent.report_conditions(0, &["+Applied", "+Ready"]);
    let document: Value = serde_json::from_str(&broker.run_successfully(&["status", "-o", "json"])).unwrap();
    let assignment = &document["stacks"][0]["assignments"][0];
    assert_eq!((&assignment["state"], &assignment["agent_id"]), (&"Ready".into(), &document["agents"][0]["id"]));
    assert!(assignment["since"].as_str().unwrap().ends_with('Z'), "{assignment}");
    assert_eq!(broker.run_successfully(&["status", "-o", "name"]), "stack/web\n");
}

#[test]
fn a_generator_deploys_and_follows_its_own_stacks() {
    let broker = Broker::start();
    let agent = Agent::active(&broker, "east", "prod");
    let create = |name: &str| {
        let key = broker.directory.path().join(name);
        broker.run_successfully(&["generator", "create", name, "--new-key-file", key.to_str().unwrap()]);
        key
    };
    let (ci, other) = (create("ci"), create("other"));
    broker.run_successfully(&["generator", "register", "ci", "east"]);
    let file = broker.write_file("web.yaml", BUNDLE);
    let file = file.to_str().unwrap();
    let run = |key: &std::path::Path, arguments: &[&str]| {
        let output = run_sindri(&broker.address, key, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&ci, &["apply", "web", "-f", file, "--create", "--target", "east"]);
    agent.report(EventStatus::Failure, Some("no room"));
    assert!(run(&ci, &["status", "web"]).contains("\nweb Failed on prod: no room\n"));
    assert_eq!(parse_cells(&run(&ci, &["events", "web"]))[0][4..], ["failed", "no room"]);
    assert_eq!(parse_cells(&run(&ci, &["events", "east", "--since", "1h"])).len(), 1);
    assert_eq!(parse_cells(&run(&ci, &["history", "web"])).len(), 1);
    let approval = agent.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    assert!(run(&ci, &["approvals"]).contains(&approval));
    assert_eq!(run(&other, &["status"]), "");
    assert_eq!(parse_cells(&run(&other, &["approvals"])).len(), 0);
    assert_eq!(parse_cells(&run(&other, &["events", "east"])).len(), 0);
    for arguments in [&["status", "web"][..], &["history", "web"], &["events", "web"], &["approve", "--stack", "web"]] {
        expect_failure(&run_sindri(&broker.address, &other, arguments), 2);
    }
    let unregistered = run_sindri(&broker.address, &other, &["apply", "x", "-f", file, "--create", "--target", "east"]);
    let unregistered = expect_failure(&unregistered, 2);
    assert!(unregistered.contains("an administrator registers it with sindri generator register"), "{unregistered}");
    assert!(run(&ci, &["approve", "--stack", "web", "--yes"]).ends_with(&format!("approval {approval} is approved\n")));
}

#[test]
fn an_agent_that_is_away_is_wrong_also_without_a_stack() {
    let broker = Broker::start();
    let _east = Agent::active(&broker, "east", "prod");
    broker.run_successfully(&["status", "--exit-code"]);
    broker.run_successfully(&["agent", "create", "west", "--cluster", "far"]);
    let wrong = expect_failure(&broker.run(&["status", "--exit-code"]), 1);
    assert_eq!(wrong, "sindri: something is wrong with agent west");
}

#[test]
fn a_watch_goes_on_when_a_request_fails() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, "brokkr_BRabcdef_secret").unwrap();
    // Nothing listens on the port of discard.
    let mut watch = command("http://127.0.0.1:9", &key, &["status", "--watch"]);
    let mut process = watch.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let lines: Vec<String> = lines.take(2).map(Result::unwrap).collect();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.ends_with("; it is tried again")), "{lines:?}");
}
