//! The first five minutes with Sindri.

use crate::support::{BUNDLE, Broker, parse_cells};

#[test]
fn the_first_five_minutes() {
    let broker = Broker::start();
    let created = broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    assert!(created.contains("key, shown only once: brokkr_BR"), "{created}");
    assert_eq!(broker.run_successfully(&["agent", "activate", "east"]), "agent east is active\n");
    assert_eq!(parse_cells(&broker.run_successfully(&["agent", "list"]))[0][..4], ["east", "prod", "active", "never"]);
    let stack = broker.run(&["stack", "create", "web"]);
    let (printed, noted) = (String::from_utf8_lossy(&stack.stdout), String::from_utf8_lossy(&stack.stderr));
    assert!(printed.starts_with("stack web (") && noted.starts_with("generator default ("), "{printed}{noted}");
    assert!(!format!("{printed}{noted}").contains("brokkr_"), "a log of CI would have the key: {printed}{noted}");
    assert!(
        !broker.run_successfully(&["stack", "create", "shop"]).contains("generator"),
        "the generator was created twice"
    );
    assert_eq!(broker.run_successfully(&["target", "web", "east"]), "stack web is assigned to agent east\n");
    assert_eq!(broker.run_successfully(&["target", "web", "east"]), "stack web is assigned to agent east\n");
    assert_eq!(
        parse_cells(&broker.run_successfully(&["status"])),
        [
            &["shop", "-", "-"][..],
            &["web", "-", "Offline"],
            &[],
            &["agent east of cluster prod is offline: it was never seen"],
            &["shop is not targeted at any cluster: sindri target shop AGENT"],
        ]
    );
    let file = broker.write_file("web.yaml", BUNDLE);
    let applied = broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    let sequence = applied.strip_prefix("stack web is at revision 1, sequence ").unwrap();
    assert!(sequence.ends_with(", with 1 object\n"), "{applied}");
    assert_eq!(parse_cells(&broker.run_successfully(&["status", "web"]))[0], ["web", "1", "Offline"]);
    assert_eq!(parse_cells(&broker.run_successfully(&["events", "east"])).len(), 0);
    assert_eq!(parse_cells(&broker.run_successfully(&["events", "web"])).len(), 0);
    assert!(broker.run_successfully(&["untarget", "web", "east"]).contains("is no longer assigned to agent east"));
    let status = broker.run_successfully(&["status", "web"]);
    assert_eq!(status, "STACK  REVISION\nweb    1\n\nweb is not targeted at any cluster: sindri target web AGENT\n");
    assert!(broker.run_successfully(&["delete", "web"]).starts_with("stack web is deleted"));
    assert_eq!(broker.expect_usage_error(&["status", "web"]), "sindri: there is no stack web");
    assert_eq!(broker.run_successfully(&["agent", "deactivate", "east"]), "agent east is inactive\n");
}
