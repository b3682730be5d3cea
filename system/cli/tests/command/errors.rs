//! Errors: one sentence, the exit code, and the next step.

use crate::support::{Broker, expect_failure, run_sindri};

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
