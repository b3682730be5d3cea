//! `sindri approvals`, `approve` and `reject`, and the conditions of a stack.

use crate::reporting_agent::Agent;
use crate::support::{Broker, expect_failure, parse_cells};

#[test]
fn conditions_and_approvals_are_listed_and_decided() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals"])).len(), 0);
    let approval = agent.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    let status = broker.run_successfully(&["status", "web", "-o", "wide"]);
    assert!(status.contains("\nweb Blocked on prod: 12 of 13 objects would go\n"), "{status}");
    assert!(status.contains("\nstack web is Blocked\nCLUSTER  AGENT  SEQUENCE  ACCEPTED"), "{status}");
    let row = status.lines().last().unwrap();
    assert!(row.starts_with("prod ") && row.ends_with("Blocked=True TooMuch: 12 of 13 objects would go"), "{status}");
    let commands: [&[&str]; 5] =
        [&["status", "web"], &["approvals"], &["approvals", &approval], &["agent", "list"], &["history", "web"]];
    for command in commands {
        let output = broker.run_with_closed_pipe(command);
        assert!(output.status.success() && output.stderr.is_empty(), "{command:?}: {output:?}");
    }
    let error = expect_failure(&broker.run_with_closed_pipe(&["agent", "create", "west", "--cluster", "west"]), 1);
    assert!(error.starts_with("sindri: cannot write to standard output: "), "{error}");
    let pending = broker.run_successfully(&["approvals"]);
    let cells = &parse_cells(&pending)[0];
    assert_eq!(cells[..4], [&approval, "web", "east", "pending"]);
    assert_eq!(cells[5], "12 of 13 objects would go");
    assert!(broker.run_successfully(&["approvals", &approval]).ends_with("\n\n- delete ConfigMap b/a\n"));
    let decided = broker.run_successfully(&["approve", &approval[..8]]);
    let shown =
        format!("approval {approval} of stack web on agent east is pending\n- 12 of 13 objects would go\n\n- delete");
    assert!(
        decided.starts_with(&shown) && decided.ends_with(&format!("approval {approval} is approved\n")),
        "{decided}"
    );
    let again = broker.run_successfully(&["approve", &approval]);
    assert!(again.ends_with(&format!("approval {approval} is approved\n")), "{again}");
    let rejected = broker.expect_usage_error(&["reject", &approval]);
    assert!(
        rejected.ends_with(&format!("the broker responded with 409: approval {approval} is approved")),
        "{rejected}"
    );
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals"])).len(), 0);
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals", "--all"])).len(), 1);
    let missing = broker.expect_usage_error(&["approve", "web"]);
    assert!(missing.starts_with("sindri: no pending approval has an id that begins with web"), "{missing}");
}

#[test]
fn the_plans_of_a_stack_are_decided_together_and_a_rejection_says_what_follows() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    agent.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    broker.run_successfully(&["stack", "create", "shop"]);
    let none = broker.expect_usage_error(&["reject", "--stack", "shop"]);
    assert_eq!(none, "sindri: no plan of stack shop waits for an approval");
    broker.expect_usage_error(&["reject", "--stack", "web", "--all"]);
    let rejected = broker.run_successfully(&["reject", "--stack", "web", "--yes"]);
    assert!(rejected.contains("\n- delete ConfigMap b/a\n"), "{rejected}");
    let next = "is rejected; nothing of this plan is carried out: to ask again, submit the revision again with sindri apply web -f FILE\n";
    assert!(rejected.ends_with(next), "{rejected}");
    assert_eq!(broker.run_successfully(&["approve", "--all", "-o", "json"]), "[]\n");
}

#[test]
fn the_same_content_is_submitted_again_after_its_plan_was_rejected() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let file = broker.directory.path().join("web.yaml");
    let apply = || broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    agent.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    assert!(apply().contains("is unchanged at revision 1"), "it is not decided yet");
    broker.run_successfully(&["reject", "--stack", "web", "--yes"]);
    assert!(apply().starts_with("stack web is at revision 2, "), "the agent asks again about a new revision");
    assert!(apply().contains("is unchanged at revision 2"));
}

#[test]
fn a_decision_is_about_the_stack_of_one_generator_and_status_names_the_generators() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let approval = agent.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    let key = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--new-key-file", key.to_str().unwrap()]);
    broker.run_successfully(&["stack", "create", "web", "--generator", "ci"]);
    let ambiguous = broker.expect_usage_error(&["approve", "--stack", "web"]);
    assert!(ambiguous.starts_with("sindri: more than one stack has the name web: use the id instead, "), "{ambiguous}");
    let status = broker.run_successfully(&["status"]);
    let rows = parse_cells(&status);
    let mut names: Vec<&str> = rows.iter().filter(|row| row.len() == 3).map(|row| row[0]).collect();
    names.sort_unstable();
    assert_eq!(names, ["web of ci", "web of default"], "{status}");
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&broker.run_successfully(&["approvals", "-o", "json"])).unwrap();
    let stack = listed[0]["stack_id"].as_str().unwrap();
    let approved = broker.run_successfully(&["approve", "--stack", stack, "--yes"]);
    assert!(approved.ends_with(&format!("approval {approval} is approved\n")), "{approved}");
}
