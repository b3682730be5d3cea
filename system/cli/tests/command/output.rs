//! Formats of the output.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::Broker;

#[test]
fn each_format_shows_the_same_objects() {
    let broker = Broker::start();
    let created = broker.run_successfully(&["agent", "create", "east", "--cluster", "prod", "-o", "json"]);
    let created: Value = serde_json::from_str(&created).unwrap();
    assert_eq!((&created["name"], &created["status"]), (&"east".into(), &"INACTIVE".into()));
    assert!(created["key"].as_str().unwrap().starts_with("brokkr_BR"), "{created}");
    let listed: Value = serde_json::from_str(&broker.run_successfully(&["agent", "list", "-o", "json"])).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["created_at"]), (&created["id"], &created["created_at"]));
    assert!(listed[0].get("key").is_none(), "{listed}");
    let yaml = broker.run_successfully(&["agent", "list", "-o", "yaml"]);
    assert!(yaml.starts_with("- id: ") && yaml.contains("\n  name: east\n"), "{yaml}");
    assert_eq!(broker.run_successfully(&["agent", "list", "-o", "name"]), "agent/east\n");
    assert_eq!(broker.run_successfully(&["agent", "activate", "east", "-o", "name"]), "agent/east\n");
    let (table, wide) =
        (broker.run_successfully(&["agent", "list"]), broker.run_successfully(&["agent", "list", "-o", "wide"]));
    assert!(table.starts_with("NAME  CLUSTER  STATUS  LAST HEARTBEAT  "), "{table}");
    assert!(wide.contains("  CREATED") && !table.contains("  CREATED"), "{wide}");
    assert!(wide.contains(" s ago") || wide.contains("now"), "{wide}");
    assert!(table.lines().all(|line| line == line.trim_end() && !line.contains('\u{1b}')), "{table:?}");
    assert_eq!(broker.run_successfully(&["stack", "create", "web", "-o", "name"]), "stack/web\n");
}

#[test]
fn a_new_key_is_written_to_a_file_of_its_owner_instead_of_being_shown() {
    let broker = Broker::start();
    let file = broker.directory.path().join("east.key");
    let create = |name| ["agent", "create", name, "--cluster", "prod", "--new-key-file", file.to_str().unwrap()];
    let created = broker.run_successfully(&create("east"));
    assert!(created.ends_with(&format!("\nits key is in {}\n", file.display())), "{created}");
    let key = std::fs::read_to_string(&file).unwrap();
    assert!(key.starts_with("brokkr_BR") && !created.contains(key.trim()), "{created}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A file that exists is not replaced, and no agent is created without a place for its key.
    let refused = broker.expect_usage_error(&create("west"));
    assert!(refused.contains("east.key cannot be written: "), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    assert_eq!(broker.run_successfully(&["agent", "list", "-o", "name"]), "agent/east\n");
    let refused = broker.expect_usage_error(&["agent", "create", "west", "--cluster", "prod", "-o", "name"]);
    assert!(refused.contains("set --new-key-file"), "{refused}");
    // A request that fails leaves no empty file.
    let other = broker.directory.path().join("other.key");
    let path = other.to_str().unwrap();
    broker.expect_usage_error(&["agent", "create", "east", "--cluster", "prod", "--new-key-file", path]);
    assert!(!other.exists());
}

#[test]
fn every_list_has_every_format_also_without_objects() {
    let broker = Broker::start();
    let lists: [&[&str]; 9] = [
        &["agent", "list"],
        &["stack", "list"],
        &["generator", "list"],
        &["webhook", "list"],
        &["admin", "list"],
        &["key", "list"],
        &["context", "list"],
        &["approvals"],
        &["audit"],
    ];
    for list in lists {
        let print = |format| broker.run_successfully(&[list, &["--output", format]].concat());
        let json: Value = serde_json::from_str(&print("json")).unwrap();
        let yaml: Value = serde_yaml::from_str(&print("yaml")).unwrap();
        assert_eq!(json, yaml, "{list:?}");
        assert_eq!(print("name").lines().count(), json.as_array().unwrap().len(), "{list:?}");
        for format in ["table", "wide"] {
            let table = print(format);
            let (rows, lines) = (json.as_array().unwrap().len(), table.lines().count());
            assert_eq!(lines, if rows == 0 { 0 } else { rows + 1 }, "{list:?}: {table}");
            assert!(!table.contains("brokkr_"), "{list:?}: {table}");
        }
    }
}
