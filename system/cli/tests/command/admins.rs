//! `sindri admin`.

use crate::support::{Broker, expect_failure, parse_cells, run_sindri};

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
