//! Agents, stacks and generators: labels, annotations, keys, targets and registrations.

use serde_json::Value;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, expect_advice, expect_failure, parse_cells, run_sindri};

fn show(broker: &Broker, noun: &str, name: &str) -> Value {
    serde_json::from_str(&broker.run_successfully(&[noun, "show", name, "-o", "json"])).unwrap()
}

/// Returns the names of the stacks in the target state of an agent, which the labels assign to it.
fn list_target_state(broker: &Broker, agent: &str) -> String {
    let listed = broker.run_successfully(&["status", "-o", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let agents = listed["agents"].as_array().unwrap();
    let agent = agents.iter().find(|known| known["name"] == agent).unwrap();
    let is_assigned = |stack: &&Value| {
        stack["assignments"].as_array().unwrap().iter().any(|assignment| assignment["agent_id"] == agent["id"])
    };
    let stacks = listed["stacks"].as_array().unwrap().iter().filter(is_assigned);
    stacks.map(|stack| stack["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn labels_and_annotations_are_added_replaced_and_removed() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["stack", "create", "web", "--description", "the shop"]);
    for noun in ["agent", "stack"] {
        let name = if noun == "agent" { "east" } else { "web" };
        let labeled = broker.run_successfully(&[noun, "label", name, "production", "region=eu"]);
        assert_eq!(labeled, format!("{noun} {name} is labeled production, region=eu\n"));
        broker.run_successfully(&[noun, "label", name, "production"]);
        broker.run_successfully(&[noun, "annotate", name, "tier=1", "note=a b=c"]);
        broker.run_successfully(&[noun, "annotate", name, "tier=2"]);
        let shown = show(&broker, noun, name);
        assert_eq!(shown["labels"], serde_json::json!(["production", "region=eu"]));
        assert_eq!(shown["annotations"], serde_json::json!({"tier": "2", "note": "a b=c"}));
        broker.run_successfully(&[noun, "unlabel", name, "production"]);
        broker.run_successfully(&[noun, "unannotate", name, "tier", "note"]);
        let text = broker.run_successfully(&[noun, "show", name]);
        assert!(text.contains("LABELS") && text.contains("region=eu") && !text.contains("production"), "{text}");
        let missing = broker.expect_usage_error(&[noun, "unlabel", name, "production"]);
        assert_eq!(missing, format!("sindri: {noun} {name} has no label production; nothing was changed"));
        let missing = broker.expect_usage_error(&[noun, "unannotate", name, "tier"]);
        assert_eq!(missing, format!("sindri: {noun} {name} has no annotation tier; nothing was changed"));
        assert_eq!(broker.run(&[noun, "annotate", name, "tier"]).status.code(), Some(2));
    }
    assert_eq!(show(&broker, "stack", "web")["generator"], "default");
    assert_eq!(show(&broker, "stack", "web")["description"], "the shop");
}

#[test]
fn a_stack_is_targeted_suspended_and_deleted() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["stack", "create", "web"]);
    broker.run_successfully(&["stack", "target", "web", "east"]);
    assert_eq!(list_target_state(&broker, "east"), "web");
    assert!(
        broker
            .run_successfully(&["stack", "suspend", "web", "--agent", "east"])
            .contains("suspended on the clusters of east")
    );
    assert_eq!(show(&broker, "stack", "web")["annotations"]["sindri.dev/suspend"], "east");
    broker.run_successfully(&["stack", "resume", "web"]);
    assert_eq!(show(&broker, "stack", "web")["annotations"], serde_json::json!({}));
    broker.run_successfully(&["stack", "untarget", "web", "east"]);
    assert_eq!(list_target_state(&broker, "east"), "");
    broker.run_successfully(&["stack", "delete", "web", "--yes"]);
    broker.run_successfully(&["stack", "create", "other"]);
    broker.run_successfully(&["stack", "release", "other"]);
    assert_eq!(parse_cells(&broker.run_successfully(&["stack", "list"])).len(), 0);
}

#[test]
fn a_generator_has_a_key_and_registered_agents() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    let ci = broker.directory.path().join("ci.key");
    let key_file = ["--new-key-file", ci.to_str().unwrap()];
    broker.run_successfully(&[&["generator", "create", "ci", "--agent", "east"], &key_file[..]].concat());
    assert_eq!(show(&broker, "generator", "ci")["registered_agents"], serde_json::json!(["east"]));
    broker.run_successfully(&["generator", "unregister", "ci", "east"]);
    assert_eq!(show(&broker, "generator", "ci")["registered_agents"], serde_json::json!([]));
    broker.run_successfully(&["generator", "register", "ci", "east"]);
    broker.run_successfully(&["generator", "register", "ci", "east"]);
    let as_ci = |arguments: &[&str]| run_sindri(&broker.address, &ci, arguments);
    assert!(as_ci(&["stack", "create", "web"]).status.success());
    assert_eq!(broker.run_successfully(&["generator", "deactivate", "ci"]), "generator ci is inactive\n");
    let inactive = as_ci(&["stack", "create", "shop"]);
    let advice = expect_advice(&inactive, 2);
    assert_eq!(advice, "an administrator activates the generator with sindri generator activate");
    assert_eq!(broker.run_successfully(&["generator", "activate", "ci"]), "generator ci is active\n");
    assert!(as_ci(&["stack", "create", "shop"]).status.success());
    let rotated = broker.run_successfully(&["generator", "rotate-key", "ci"]);
    assert!(rotated.starts_with("generator ci has a new key\nkey, shown only once: brokkr_BR"), "{rotated}");
    let refused = expect_failure(&as_ci(&["stack", "list"]), 2);
    assert!(refused.contains("the broker does not accept the key"), "{refused}");
    assert!(broker.run_successfully(&["generator", "list"]).contains("ci "));
    broker.run_successfully(&["generator", "delete", "ci"]);
    assert_eq!(parse_cells(&broker.run_successfully(&["stack", "list"])).len(), 0);
}

#[test]
fn a_rotated_key_of_an_agent_replaces_the_old_one() {
    let broker = Broker::start();
    let created = broker.run_successfully(&["agent", "create", "east", "--cluster", "prod", "-o", "json"]);
    let created: Value = serde_json::from_str(&created).unwrap();
    let old = broker.write_file("old", created["key"].as_str().unwrap());
    let whoami = |key| {
        let output = run_sindri(&broker.address, key, &["whoami", "-o", "json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
    };
    assert_eq!((&whoami(&old)["role"], &whoami(&old)["name"]), (&"agent".into(), &"east".into()));
    let new = broker.directory.path().join("new");
    // With its own key an agent sees itself.
    let rotate = ["agent", "rotate-key", "east", "--new-key-file", new.to_str().unwrap()];
    assert!(run_sindri(&broker.address, &old, &rotate).status.success());
    assert_eq!(run_sindri(&broker.address, &new, &["agent", "list", "-o", "name"]).stdout, b"agent/east\n");
    assert_eq!((whoami(&old), &whoami(&new)["name"]), (Value::Null, &"east".into()));
}

#[test]
fn a_generators_key_manages_its_own_stacks_and_says_who_must_do_the_rest() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["agent", "create", "west", "--cluster", "west"]);
    let ci = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--agent", "east", "--new-key-file", ci.to_str().unwrap()]);
    broker.run_successfully(&["stack", "create", "foreign"]);
    let run = |arguments: &[&str]| {
        let output = run_sindri(&broker.address, &ci, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["whoami"]).contains("generator\n"), "whoami");
    run(&["stack", "create", "web"]);
    run(&["stack", "target", "web", "east"]);
    assert_eq!(run(&["stack", "list", "-o", "name"]), "stack/web\n");
    assert_eq!(run(&["generator", "list", "-o", "name"]), "generator/ci\n");
    assert!(run(&["generator", "show", "ci"]).contains("east"));
    assert!(run(&["agent", "show", "east"]).contains("prod"));
    run(&["stack", "label", "web", "production"]);
    assert!(run(&["stack", "show", "web"]).contains("production"));
    run(&["stack", "suspend", "web"]);
    run(&["stack", "resume", "web"]);
    let refused = expect_failure(&run_sindri(&broker.address, &ci, &["stack", "target", "web", "west"]), 2);
    assert!(
        refused.contains("agent west is not registered with the generator of stack web: an administrator"),
        "{refused}"
    );
    let unknown = expect_failure(&run_sindri(&broker.address, &ci, &["stack", "delete", "foreign"]), 2);
    assert_eq!(unknown, "sindri: there is no stack foreign");
    run(&["stack", "untarget", "web", "east"]);
    run(&["stack", "delete", "web"]);
}

#[test]
fn an_annotation_that_is_set_again_takes_no_stack_away_and_a_rejected_value_leaves_the_old_one() {
    let broker = Broker::start();
    let agent = Agent::active(&broker, "east", "prod");
    broker.run_successfully(&["stack", "create", "web"]);
    broker.run_successfully(&["generator", "register", "default", "east"]);
    for (noun, name) in [("agent", "east"), ("stack", "web")] {
        broker.run_successfully(&[noun, "annotate", name, "tier=gold"]);
    }
    let file = broker.write_file("web.yaml", BUNDLE);
    broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    let sequence = agent.report_conditions(0, &["+Applied", "+Ready"]);
    for (noun, name) in [("agent", "east"), ("stack", "web")] {
        broker.run_successfully(&[noun, "annotate", name, "tier=gold"]);
    }
    let status = broker.run_successfully(&["status", "web"]);
    assert_eq!(status, "STACK  REVISION  prod\nweb    1         Ready\n", "no removal was issued after {sequence}");
    broker.run_successfully(&["stack", "suspend", "web"]);
    broker.expect_usage_error(&["stack", "annotate", "web", "sindri.dev/suspend=,"]);
    assert_eq!(show(&broker, "stack", "web")["annotations"]["sindri.dev/suspend"], "true");
    let already = broker.run_successfully(&["stack", "suspend", "web", "--agent", "east"]);
    assert_eq!(already, "stack web is suspended on every cluster already; nothing was changed\n");
    assert_eq!(show(&broker, "stack", "web")["annotations"]["sindri.dev/suspend"], "true");
}

#[test]
fn suspensions_on_several_clusters_at_once_are_all_kept() {
    const AGENTS: [&str; 4] = ["east", "north", "south", "west"];
    let broker = Broker::start();
    for name in AGENTS {
        broker.run_successfully(&["agent", "create", name, "--cluster", name]);
    }
    broker.run_successfully(&["stack", "create", "web"]);
    let steps = [("suspend", Value::from(AGENTS.join(","))), ("resume", Value::Null)];
    for (command, expected) in std::iter::repeat_n(steps, 3).flatten() {
        std::thread::scope(|scope| {
            for name in AGENTS {
                scope.spawn(|| broker.run_successfully(&["stack", command, "web", "--agent", name]));
            }
        });
        assert_eq!(show(&broker, "stack", "web")["annotations"]["sindri.dev/suspend"], expected, "{command}");
    }
}

#[test]
fn a_suspension_is_added_to_the_others_and_ends_for_one_agent() {
    let broker = Broker::start();
    for (name, cluster) in [("east", "prod"), ("west", "far"), ("twin", "one"), ("twin", "two")] {
        broker.run_successfully(&["agent", "create", name, "--cluster", cluster]);
    }
    broker.run_successfully(&["stack", "create", "web"]);
    let suspended = || show(&broker, "stack", "web")["annotations"]["sindri.dev/suspend"].clone();
    broker.run_successfully(&["stack", "suspend", "web", "--agent", "west"]);
    let both = broker.run_successfully(&["stack", "suspend", "web", "--agent", "east"]);
    assert!(both.starts_with("stack web is suspended on the clusters of east, west: "), "{both}");
    assert_eq!(suspended(), "east,west");
    let agents: Vec<Value> = serde_json::from_str(&broker.run_successfully(&["agent", "list", "-o", "json"])).unwrap();
    let twin = agents.iter().find(|agent| agent["name"] == "twin").unwrap()["id"].as_str().unwrap();
    let refused = broker.expect_usage_error(&["stack", "suspend", "web", "--agent", twin]);
    assert!(refused.contains("several have the name twin, on the clusters "), "{refused}");
    let resumed = broker.run_successfully(&["stack", "resume", "web", "--agent", "west"]);
    assert_eq!(resumed, "stack web is written again, except on the clusters of east\n");
    let other = broker.expect_usage_error(&["stack", "resume", "web", "--agent", "west"]);
    assert_eq!(other, "sindri: stack web is not suspended on the cluster of west");
    assert_eq!(suspended(), "east");
    broker.run_successfully(&["stack", "resume", "web", "--agent", "east"]);
    assert_eq!(suspended(), Value::Null);
    broker.run_successfully(&["stack", "suspend", "web"]);
    let everywhere = broker.expect_usage_error(&["stack", "resume", "web", "--agent", "east"]);
    assert!(everywhere.contains("sindri stack annotate web sindri.dev/suspend=AGENT,AGENT"), "{everywhere}");
    assert_eq!(suspended(), "true");
}

#[test]
fn nothing_is_removed_if_one_of_several_is_missing() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["stack", "create", "web"]);
    for (noun, name) in [("agent", "east"), ("stack", "web")] {
        broker.run_successfully(&[noun, "label", name, "a", "b"]);
        broker.run_successfully(&[noun, "annotate", name, "c=1", "d=2"]);
        let missing = broker.expect_usage_error(&[noun, "unlabel", name, "a", "missing", "b"]);
        assert_eq!(missing, format!("sindri: {noun} {name} has no label missing; nothing was changed"));
        broker.expect_usage_error(&[noun, "unannotate", name, "c", "missing", "d"]);
        let shown = show(&broker, noun, name);
        assert_eq!(shown["labels"], serde_json::json!(["a", "b"]));
        assert_eq!(shown["annotations"], serde_json::json!({"c": "1", "d": "2"}));
    }
}
