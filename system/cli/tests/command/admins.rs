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
    let refused = expect_failure(&broker.run(&["admin", "rotate-key", "dashboard"]), 2);
    assert!(
        refused.contains(&format!("the key of administrator dashboard ends at {end}, and the new one")),
        "{refused}"
    );
    let keep = broker.run(&["admin", "rotate-key", "dashboard", "--expires-at", "2098-01-31T12:00:00Z"]);
    assert!(keep.status.success() && keep.stderr.is_empty(), "{keep:?}");
    assert!(broker.run_successfully(&["admin", "list"]).contains("2098-01-31T12:00:00Z"));
    let never = broker.run(&["admin", "rotate-key", "dashboard", "--expires-at", "never"]);
    assert!(never.status.success(), "{never:?}");
    assert!(!broker.run_successfully(&["admin", "list"]).contains("2098-01-31"));
    broker.run_successfully(&["admin", "delete", "anna"]);
    expect_failure(&run_sindri(&broker.address, &new, &["agent", "list"]), 2);
    let last = expect_failure(&broker.run(&["admin", "delete", "admin"]), 2);
    assert!(last.contains("at least one administrator must have all permissions"), "{last}");
}

#[test]
fn the_own_key_stays_valid_for_a_time_so_that_a_lost_new_one_locks_no_one_out() {
    let broker = Broker::start();
    let rotated = broker.run(&["admin", "rotate-key"]);
    let notes = String::from_utf8_lossy(&rotated.stderr).into_owned();
    assert!(notes.contains("the old key stays valid for ten minutes") && notes.contains("does not expire"), "{notes}");
    assert!(broker.run(&["agent", "list"]).status.success());
    let long = expect_failure(&broker.run(&["admin", "rotate-key", "--keep-old-for", "31d"]), 2);
    assert!(long.contains("it is not a duration such as 90s"), "{long}");
    let broker = Broker::start();
    assert!(broker.run(&["admin", "rotate-key", "--keep-old-for", "0s"]).status.success());
    expect_failure(&broker.run(&["agent", "list"]), 2);
}
