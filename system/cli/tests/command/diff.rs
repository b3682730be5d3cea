//! `sindri diff`.

use std::io::Write;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, command, expect_failure, run_sindri};

fn spawn(broker: &Broker, arguments: &[&str]) -> Child {
    let arguments = [&["diff"], arguments].concat();
    let mut command = command(&broker.address, &broker.key_path(), &arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a broker with the stack `web` on these clusters, and returns the path of its file.
fn start(clusters: &[&str]) -> (Broker, Vec<Agent>, String) {
    let broker = Broker::start();
    let file = broker.write_file("web.yaml", BUNDLE).display().to_string();
    broker.run_successfully(&["apply", "web", "-f", &file, "--create"]);
    let agents = clusters.iter().map(|cluster| Agent::active(&broker, &format!("agent-{cluster}"), cluster)).collect();
    for cluster in clusters {
        let agent = format!("agent-{cluster}");
        broker.run_successfully(&["generator", "register", "default", &agent]);
        broker.run_successfully(&["target", "web", &agent]);
    }
    (broker, agents, file)
}

#[test]
fn the_same_plan_of_several_clusters_is_printed_once_and_changes_have_an_exit_code() {
    let (broker, agents, file) = start(&["east", "north", "west"]);
    broker.run_successfully(&["agent", "deactivate", "agent-north"]);
    let changed = |text: &str, answers: &[(bool, bool, &str)]| {
        let process = spawn(&broker, &["-f", &file, "--stack", "web", "-o", text]);
        for (agent, (failed, changes, plan)) in [&agents[0], &agents[2]].into_iter().zip(answers) {
            agent.report_plan(*failed, *changes, plan);
        }
        process.wait_with_output().unwrap()
    };
    let plan = "~ ConfigMap b/a\n    data.x: \"1\" → \"2\"\n";
    let output = changed("table", &[(false, true, plan), (false, true, plan)]);
    let expected = format!("east, west:\n{plan}\nnorth:\nno plan: the agent is inactive\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let message = expect_failure(&output, 5);
    assert!(message.ends_with("sindri: stack web would change on east, west"), "{message}");
    let output = changed("json", &[(false, true, plan), (true, false, "! document 1, line 2: no\n")]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["stack"], &document["result"]), (&"web".into(), &"failed".into()));
    assert_eq!(document["agents"][0]["plan"], plan);
    assert!(expect_failure(&output, 1).ends_with("sindri: stack web would fail on west"));
    assert!(!broker.run_successfully(&["history", "web"]).contains("\n2 "), "nothing was submitted");
}

#[test]
fn without_changes_the_exit_code_is_0_and_progress_is_no_part_of_the_output() {
    let (broker, agents, _) = start(&["east"]);
    let mut process = spawn(&broker, &["-f", "-"]);
    process.stdin.take().unwrap().write_all(BUNDLE.as_bytes()).unwrap();
    agents[0].report_plan(false, false, "= 1 objects are unchanged\n");
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "east:\n= 1 objects are unchanged\n");
}

#[test]
fn what_is_not_known_is_no_success() {
    let (broker, _agents, file) = start(&["east"]);
    let run = |arguments: &[&str]| broker.run(&[&["diff", "-f", &file], arguments].concat());
    let late = run(&["--timeout", "1s"]);
    assert!(expect_failure(&late, 4).contains("there is no plan after 1s of east"), "{late:?}");
    assert_eq!(String::from_utf8_lossy(&late.stdout), "east:\nno plan in time\n");
    broker.run_successfully(&["agent", "deactivate", "agent-east"]);
    let absent = expect_failure(&run(&[]), 1);
    assert!(absent.contains("there is no plan of east, whose agents are offline or inactive"), "{absent}");
    broker.run_successfully(&["untarget", "web", "agent-east", "--yes"]);
    assert!(expect_failure(&run(&[]), 1).contains("stack web is not targeted at any cluster"));
    for timeout in ["10m", "-1s"] {
        assert!(expect_failure(&run(&[&format!("--timeout={timeout}")]), 2).contains("between 0s and 9m"));
    }
}

#[test]
fn files_and_the_stack_are_checked_before_anything_is_proposed() {
    let (broker, _agents, file) = start(&["east"]);
    let invalid = broker.write_file("invalid.yaml", "kind: ConfigMap\n").display().to_string();
    assert!(broker.expect_usage_error(&["diff", "-f", &invalid]).contains("invalid.yaml: document 1, line 1"));
    assert!(broker.expect_usage_error(&["diff", "-f", &file, "--stack", "wab"]).contains("did you mean web?"));
    broker.run_successfully(&["stack", "create", "other"]);
    let message = broker.expect_usage_error(&["diff", "-f", &file]);
    assert_eq!(message, "sindri: --stack must say which stack the files are for: other, web");
    let key = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--new-key-file", key.to_str().unwrap()]);
    let foreign = run_sindri(&broker.address, &key, &["diff", "-f", &file]);
    assert_eq!(
        expect_failure(&foreign, 2),
        "sindri: the key can read no stack; create one with sindri apply STACK --create"
    );
    let logs = broker.run_successfully(&["audit", "--action", "proposal.created", "-o", "name"]);
    assert_eq!(logs, "");
}
