//! `sindri approvals`, `approve` and `reject`, and the conditions of a stack.

use crate::reporting_agent::Agent;
use crate::support::{Broker, expect_failure, parse_cells};

#[test]
fn conditions_and_approvals_are_listed_and_decided() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals"])).len(), 0);
    let approval = agent.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    let status = broker.run_successfully(&["status", "web"]);
    assert!(status.contains("\nstack web is Blocked\nCLUSTER  AGENT  SEQUENCE  ACCEPTED"), "{status}");
    let row = status.lines().last().unwrap();
    assert!(row.starts_with("prod ") && row.ends_with("Blocked=True TooMuch: 12 of 13 objects would go"), "{status}");
    let commands: [&[&str]; 5] =
        [&["status", "web"], &["approvals"], &["approvals", &approval], &["agent", "list"], &["events", "web"]];
    for command in commands {
        let output = broker.run_with_closed_pipe(command);
        assert!(output.status.success() && output.stderr.is_empty(), "{command:?}: {output:?}");
    }
    let error = expect_failure(&broker.run_with_closed_pipe(&["agent", "create", "west", "--cluster", "west"]), 1);
    assert!(error.starts_with("sindri: cannot write to standard output: "), "{error}");
    let pending = broker.run_successfully(&["approvals"]);
    assert_eq!(parse_cells(&pending), [[&approval, "web", "east", "pending", "12 of 13 objects would go"]]);
    assert!(broker.run_successfully(&["approvals", &approval]).ends_with("\n\n- delete ConfigMap b/a\n"));
    assert_eq!(broker.run_successfully(&["approve", &approval]), format!("approval {approval} is approved\n"));
    assert_eq!(broker.run_successfully(&["approve", &approval]), format!("approval {approval} is approved\n"));
    let rejected = broker.expect_usage_error(&["reject", &approval]);
    assert!(
        rejected.ends_with(&format!("the broker responded with 409: approval {approval} is approved")),
        "{rejected}"
    );
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals"])).len(), 0);
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals", "--all"])).len(), 1);
    assert_eq!(broker.expect_usage_error(&["approve", "web"]), "sindri: web is not the id of an approval");
}
