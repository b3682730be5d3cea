//! The first five minutes with Sindri: the real broker and the real command as processes.
//!
//! The binary of the broker must be next to that of this crate; `cargo build --release -p sindri-broker` builds it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_client::{Client, TargetStateResponse};
use sindri_model::wire::{
    ApprovalRequest, ConditionStatus, EVENT_TYPE_DEPLOY, EventStatus, NewAgentEvent, ReportedCondition,
    StackStatusReport, condition,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const BUNDLE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";

/// A broker that ends with the test.
struct Broker {
    process: Child,
    address: String,
    directory: TempDir,
}

impl Broker {
    fn start() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_sindri")).with_file_name("sindri-broker");
        assert!(
            program.exists(),
            "run `cargo build --release -p sindri-broker` first: {} is missing",
            program.display()
        );
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
        let mut process = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--log", "off", "--database-url", &database, "--admin-key-file"])
            .arg(directory.path().join("key"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.unwrap().strip_prefix("READY ").map(str::to_owned));
        Self { process, address: ready.expect("the broker did not start"), directory }
    }

    fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run_sindri(&self.address, &self.directory.path().join("key"), arguments)
    }

    fn run_successfully(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command whose output is a closed pipe, as with `grep -q`.
    fn run_with_closed_pipe(&self, arguments: &[&str]) -> Output {
        let mut command = command(&self.address, &self.directory.path().join("key"), arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(process.stdout.take());
        process.wait_with_output().unwrap()
    }

    /// Returns the message of a command with invalid usage.
    fn expect_usage_error(&self, arguments: &[&str]) -> String {
        expect_failure(&self.run(arguments), 2)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn run_sindri(address: &str, key_file: &Path, arguments: &[&str]) -> Output {
    command(address, key_file, arguments).output().unwrap()
}

fn command(address: &str, key_file: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sindri"));
    command.env_remove("SINDRI_KEY").env("SINDRI_BROKER", address).env("SINDRI_KEY_FILE", key_file).args(arguments);
    command
}

fn expect_failure(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text.trim_end().to_owned()
}

/// Returns the cells of each line of a table.
fn parse_cells(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .skip(1)
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect()
}

#[test]
fn the_first_five_minutes() {
    let broker = Broker::start();
    let created = broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    assert!(created.contains("key, shown only once: brokkr_BR"), "{created}");
    assert_eq!(broker.run_successfully(&["agent", "activate", "east"]), "agent east is active\n");
    assert_eq!(parse_cells(&broker.run_successfully(&["agent", "list"]))[0][..4], ["east", "prod", "active", "never"]);
    assert!(broker.run_successfully(&["stack", "create", "web"]).contains("generator default"));
    assert!(
        !broker.run_successfully(&["stack", "create", "shop"]).contains("generator"),
        "the generator was created twice"
    );
    assert_eq!(broker.run_successfully(&["target", "web", "east"]), "stack web is assigned to agent east\n");
    assert_eq!(broker.run_successfully(&["target", "web", "east"]), "stack web is assigned to agent east\n");
    assert_eq!(
        parse_cells(&broker.run_successfully(&["status"])),
        [["shop", "-", "-", "not targeted"], ["web", "-", "east", "no revision yet"]]
    );
    let file = broker.write_file("web.yaml", BUNDLE);
    let applied = broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    let sequence = applied.strip_prefix("stack web is at sequence ").and_then(|rest| rest.split_once(' ')).unwrap();
    assert_eq!(sequence.1, "with 1 objects\n");
    assert_eq!(parse_cells(&broker.run_successfully(&["status", "web"])), [["web", sequence.0, "east", "pending"]]);
    assert_eq!(parse_cells(&broker.run_successfully(&["events", "east"])).len(), 0);
    assert_eq!(parse_cells(&broker.run_successfully(&["events", "web"])).len(), 0);
    assert!(broker.run_successfully(&["untarget", "web", "east"]).contains("is no longer assigned to agent east"));
    assert_eq!(parse_cells(&broker.run_successfully(&["status", "web"])), [["web", sequence.0, "-", "not targeted"]]);
    assert!(broker.run_successfully(&["delete", "web"]).starts_with("stack web is deleted"));
    assert_eq!(broker.expect_usage_error(&["status", "web"]), "sindri: there is no stack web");
    assert_eq!(broker.run_successfully(&["agent", "deactivate", "east"]), "agent east is inactive\n");
}

#[test]
fn status_follows_the_target_state_and_the_events_of_the_agent() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let status = || parse_cells(&broker.run_successfully(&["status", "web"]))[0][2..].join(" ");

    agent.report(EventStatus::Failure, Some("no room\nfor it"));
    assert_eq!(status(), "east failed: no room for it");
    agent.report(EventStatus::Success, None);
    assert_eq!(status(), "east applied");
    let file = broker.write_file("web.yaml", BUNDLE);
    broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    assert_eq!(status(), "east pending");
    broker.run_successfully(&["untarget", "web", "east"]);
    assert_eq!(status(), "east removing");
    agent.report(EventStatus::Success, None);
    assert_eq!(status(), "- not targeted");
    broker.run_successfully(&["delete", "web"]);
    let all = broker.run_successfully(&["status"]);
    assert!(all.contains("(deleted ") && all.contains("removing"), "{all}");
    agent.report(EventStatus::Success, None);
    assert_eq!(parse_cells(&broker.run_successfully(&["status"])).len(), 0);
    let events = broker.run_successfully(&["events", "east"]);
    let outcomes: Vec<&str> = parse_cells(&events).iter().map(|row| row[4]).collect();
    assert_eq!(outcomes, ["failed", "applied", "removed", "removed"]);
}

/// An agent that changes nothing and reports as the test requires.
struct Agent {
    runtime: Runtime,
    client: Client,
}

impl Agent {
    /// Creates an agent with the stack `web` in its target state.
    fn with_stack(broker: &Broker) -> Self {
        let created = broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
        broker.run_successfully(&["stack", "create", "web"]);
        broker.run_successfully(&["target", "web", "east"]);
        let file = broker.write_file("web.yaml", BUNDLE);
        broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
        Self::new(&broker.address, created.rsplit(' ').next().unwrap().trim())
    }

    fn new(address: &str, key: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::new(HttpConnector::new(), address.parse().unwrap(), key).unwrap();
        Self { runtime, client }
    }

    /// Polls, requests an approval for its only stack, and returns the id of the approval.
    fn request_approval(&self, reason: &str, plan: &str) -> String {
        self.runtime.block_on(async {
            let id = self.client.whoami().await.unwrap().agent.unwrap();
            let TargetStateResponse::Changed { objects, .. } = self.client.get_target_state(id, None).await.unwrap()
            else {
                panic!("the target state is unchanged although no ETag was sent");
            };
            let (stack, deployment_object_id) = (objects[0].stack_id, objects[0].id);
            let (digest, plan) = ("a".repeat(64), plan.to_owned());
            let request = ApprovalRequest { deployment_object_id, digest, reasons: vec![reason.to_owned()], plan };
            let approval = self.client.request_approval(id, stack, &request).await.unwrap();
            let blocked = ReportedCondition {
                kind: condition::BLOCKED.to_owned(),
                status: ConditionStatus::True,
                reason: "TooMuch".to_owned(),
                message: reason.to_owned(),
            };
            let report = StackStatusReport { deployment_object_id, conditions: vec![blocked] };
            self.client.report_stack_status(id, stack, &report).await.unwrap();
            approval.id.to_string()
        })
    }

    /// Polls, and reports an outcome for its only stack.
    fn report(&self, status: EventStatus, message: Option<&str>) {
        self.runtime.block_on(async {
            let id = self.client.whoami().await.unwrap().agent.unwrap();
            let TargetStateResponse::Changed { objects, .. } = self.client.get_target_state(id, None).await.unwrap()
            else {
                panic!("the target state is unchanged although no ETag was sent");
            };
            let [object] = &objects[..] else { panic!("{objects:?}") };
            let event = NewAgentEvent {
                agent_id: id,
                deployment_object_id: object.id,
                event_type: EVENT_TYPE_DEPLOY.to_owned(),
                status,
                message: message.map(str::to_owned),
            };
            self.client.report_outcome(&event, &format!("{}-{}", object.id, event.status)).await.unwrap();
        });
    }
}

#[test]
fn an_agent_with_the_name_of_a_deleted_one_has_a_new_id() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let before = broker.run_successfully(&["agent", "list"]);
    let output = broker.run_successfully(&["agent", "delete", "east"]);
    assert_eq!(output.trim(), "agent east of cluster prod is deleted; the objects in its cluster stay");
    assert_eq!(parse_cells(&broker.run_successfully(&["agent", "list"])).len(), 0);
    assert!(!broker.run(&["agent", "delete", "east"]).status.success(), "the agent was deleted already");
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let after = broker.run_successfully(&["agent", "list"]);
    let (before, after) = (&parse_cells(&before)[0], &parse_cells(&after)[0]);
    assert_eq!(after[..2], before[..2]);
    assert_ne!(after.last(), before.last(), "the new agent has the id of the deleted one");
}

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

#[test]
fn administrators_have_names_and_keys_of_their_own() {
    let broker = Broker::start();
    let create = |arguments: &[&str]| {
        let printed = broker.run_successfully(&[&["admin", "create"], arguments].concat());
        printed.lines().last().unwrap().strip_prefix("key, shown only once: ").unwrap().to_owned()
    };
    let anna = broker.write_file("anna", &create(&["anna"]));
    let end = "2099-01-31T12:00:00Z";
    let reader = broker.write_file("reader", &create(&["dashboard", "--read-only", "--expires-at", end]));
    let listed = broker.run_successfully(&["admin", "list"]);
    let rows = parse_cells(&listed);
    let shown: Vec<_> = rows.iter().map(|cells| cells[..3].join(" ")).collect();
    assert_eq!(shown, ["admin admin never", "anna admin never", &format!("dashboard reader {end}")]);
    assert!(run_sindri(&broker.address, &reader, &["agent", "list"]).status.success());
    let refused = expect_failure(&run_sindri(&broker.address, &reader, &["stack", "create", "web"]), 2);
    assert!(refused.ends_with("this key only reads"), "{refused}");
    let rotate = ["admin", "rotate-key", "--keep-old-for", "1h"];
    let rotated = run_sindri(&broker.address, &anna, &rotate);
    let rotated = String::from_utf8(rotated.stdout).unwrap();
    let new = broker.write_file("new", rotated.trim().strip_prefix("key, shown only once: ").unwrap());
    for key in [&anna, &new] {
        assert!(run_sindri(&broker.address, key, &["agent", "list"]).status.success());
    }
    broker.run_successfully(&["admin", "delete", "anna"]);
    expect_failure(&run_sindri(&broker.address, &new, &["agent", "list"]), 2);
    let last = expect_failure(&broker.run(&["admin", "delete", "admin"]), 2);
    assert!(last.contains("at least one administrator must have all permissions"), "{last}");
}

#[test]
fn invalid_usage_is_one_sentence_and_exits_with_2() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    assert_eq!(broker.expect_usage_error(&["target", "web", "missing"]), "sindri: there is no agent missing");
    assert_eq!(broker.expect_usage_error(&["events", "missing"]), "sindri: there is no agent and no stack missing");
    assert_eq!(
        broker.expect_usage_error(&["stack", "create", "x", "--generator", "g"]),
        "sindri: there is no generator g"
    );
    assert!(
        broker
            .expect_usage_error(&["stack", "create", "web"])
            .ends_with("the broker responded with 409: stack web exists already")
    );
    assert!(broker.expect_usage_error(&["apply", "web", "-f", "missing.yaml"]).contains("missing.yaml cannot be read"));
    let broken = broker.write_file("broken.yaml", "kind: ConfigMap\n---\na: [\n");
    let message = broker.expect_usage_error(&["apply", "web", "-f", broken.to_str().unwrap()]);
    assert!(message.contains("broken.yaml: document 2, line"), "{message}");
    let unknown_key = broker.write_file("unknown_key", "brokkr_BRabcdef_nothing\n");
    let message = expect_failure(&run_sindri(&broker.address, &unknown_key, &["agent", "list"]), 2);
    assert_eq!(message, "sindri: cannot list the agents: the broker does not accept the key: the key is unknown");
}

#[test]
fn an_unreachable_broker_is_named_and_exits_with_1() {
    let broker = Broker::start();
    let (address, key) = (broker.address.clone(), broker.write_file("copy", "brokkr_BRabcdef_nothing"));
    let key_copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(key, key_copy.path()).unwrap();
    drop(broker);
    let message = expect_failure(&run_sindri(&address, key_copy.path(), &["agent", "list"]), 1);
    assert!(message.starts_with(&format!("sindri: cannot list the agents: the broker at {address} cannot be reached")));
    assert_eq!(message.lines().count(), 1);
}
