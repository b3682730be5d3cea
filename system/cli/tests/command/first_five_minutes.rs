//! The first five minutes with Sindri.

use sindri_model::wire::EventStatus;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, parse_cells};

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
