//! `sindri webhook`, `audit`, `key`, `version`, `completion` and `man`.

use serde_json::Value;

use crate::support::{Broker, expect_failure, parse_cells, run_sindri};

#[test]
fn a_webhook_is_created_tested_and_deleted() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    let url = "https://hooks.invalid/hook";
    let create = ["webhook", "create", "chat", "--url", url, "--event", "deployment.*", "--stack", "web"];
    let created = broker.run_successfully(&create);
    assert!(created.contains("; the key signs its messages\nkey, shown only once: whsec_"), "{created}");
    let shown = broker.run_successfully(&["webhook", "show", "chat"]);
    assert!(shown.contains("deployment.*") && !shown.contains(url), "{shown}");
    broker.run_successfully(&["webhook", "update", "chat", "--event", "stack.deleted", "--disable"]);
    assert_eq!(
        parse_cells(&broker.run_successfully(&["webhook", "list"]))[0][..3],
        ["chat", "disabled", "stack.deleted"]
    );
    broker.run_successfully(&["webhook", "update", "chat", "--enable"]);
    assert!(broker.run_successfully(&["webhook", "test", "chat"]).contains("sindri webhook deliveries chat"));
    assert_eq!(parse_cells(&broker.run_successfully(&["webhook", "deliveries", "chat"])).len(), 1);
    assert_eq!(broker.run_successfully(&["webhook", "delete", "chat"]), "webhook chat is deleted\n");
    assert_eq!(parse_cells(&broker.run_successfully(&["webhook", "list"])).len(), 0);
}

#[test]
fn the_audit_log_is_filtered_by_action_actor_and_time() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    broker.run_successfully(&["stack", "delete", "web"]);
    let actions = |arguments: &[&str]| {
        let listed = broker.run_successfully(&[&["audit", "-o", "json"], arguments].concat());
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        listed.iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(actions(&["--action", "stack.*"]), ["stack.deleted", "stack.created"]);
    assert_eq!(actions(&["--limit", "1"]), ["stack.deleted"]);
    assert_eq!(actions(&["--action", "stack.*", "--actor-type", "admin", "--since", "1h"]).len(), 2);
    assert_eq!(actions(&["--action", "stack.*", "--actor", "admin"]).len(), 2);
    assert_eq!(actions(&["--action", "stack.*", "--actor", "default"]).len(), 0);
    assert_eq!(actions(&["--since", "2099-01-01T00:00:00Z"]).len(), 0);
    broker.run_successfully(&["stack", "create", "shop"]);
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["target", "shop", "east"]);
    let table = broker.run_successfully(&["audit", "--action", "target.created"]);
    let cells = &parse_cells(&table)[0];
    assert_eq!(cells[1..], ["target.created", "admin admin", "agent east", r#"{"stack_id":"shop"}"#], "{table}");
    let unknown = broker.expect_usage_error(&["audit", "--actor", "defualt"]);
    assert!(unknown.ends_with("defualt: did you mean default?"), "{unknown}");
}

#[test]
fn keys_are_listed_without_their_secrets() {
    let broker = Broker::start();
    let listed = broker.run_successfully(&["key", "list"]);
    assert!(listed.contains("admin") && !listed.contains("brokkr_"), "{listed}");
}

#[test]
fn version_is_that_of_the_command_and_of_the_broker_and_needs_no_key() {
    let broker = Broker::start();
    let missing = broker.directory.path().join("missing");
    let output = run_sindri(&broker.address, &missing, &["version", "-o", "json"]);
    let versions: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(versions["client"], env!("CARGO_PKG_VERSION"));
    assert_eq!(versions["broker"], versions["client"]);
    let local = run_sindri("http://127.0.0.1:1", &missing, &["version", "--client"]);
    assert!(local.status.success());
    let unreachable = run_sindri("http://127.0.0.1:1", &missing, &["version"]);
    assert!(String::from_utf8_lossy(&unreachable.stdout).contains(env!("CARGO_PKG_VERSION")));
    expect_failure(&unreachable, 1);
}

#[test]
fn completion_and_manual_pages_have_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    for shell in ["bash", "zsh", "fish"] {
        let script = run_sindri("http://127.0.0.1:1", &key, &["completion", shell]);
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("rotate-key") && script.contains("untarget"), "{shell}");
    }
    let pages = directory.path().join("man");
    assert!(run_sindri("http://127.0.0.1:1", &key, &["man", pages.to_str().unwrap()]).status.success());
    for page in ["sindri.1", "sindri-stack-label.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
}
