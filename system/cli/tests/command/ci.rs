//! The example for CI in deploy/ci/, with the key of a generator only.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{BUNDLE, Broker, expect_failure};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/ci");

fn deploy(broker: &Broker, key: &Path, arguments: &[&str]) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_sindri")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut command = Command::new(format!("{EXAMPLE}/deploy.sh"));
    let variables = command.env_clear().env("PATH", path).env("SINDRI_BROKER", &broker.address);
    variables.env("SINDRI_KEY", std::fs::read_to_string(key).unwrap().trim()).args(arguments).output().unwrap()
}

#[test]
fn a_stack_is_deployed_again_and_again_with_the_key_of_a_generator() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["agent", "create", "west", "--cluster", "west"]);
    let key = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--agent", "east", "--new-key-file", key.to_str().unwrap()]);
    let file = broker.write_file("shop.yaml", BUNDLE);
    let file = file.to_str().unwrap();
    for _ in 0..2 {
        let output = deploy(&broker, &key, &["shop", file, "east"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("generator") && text.contains("stack shop is assigned to agent east"), "{text}");
    }
    let stacks: Value = serde_json::from_str(&broker.run_successfully(&["stack", "list", "-o", "json"])).unwrap();
    assert_eq!((stacks.as_array().unwrap().len(), &stacks[0]["name"]), (1, &"shop".into()));
    let unregistered = expect_failure(&deploy(&broker, &key, &["shop", file, "west"]), 2);
    assert!(unregistered.contains("agent west is not registered with the generator of stack shop"), "{unregistered}");
    let broken = broker.write_file("broken.yaml", "kind: ConfigMap\n");
    let invalid = expect_failure(&deploy(&broker, &key, &["shop", broken.to_str().unwrap(), "east"]), 2);
    assert!(invalid.contains("broken.yaml: document 1, line 1"), "{invalid}");
    expect_failure(&deploy(&broker, &key, &["shop"]), 2);
}

#[test]
fn the_workflow_runs_the_script_and_keeps_the_key_out_of_it() {
    let text = std::fs::read_to_string(format!("{EXAMPLE}/github-workflow.yaml")).unwrap();
    let workflow: Value = serde_yaml::from_str(&text).unwrap();
    let steps = workflow["jobs"]["deploy"]["steps"].as_array().unwrap();
    let last = steps.last().unwrap();
    assert!(last["run"].as_str().unwrap().starts_with("deploy/ci/deploy.sh "), "{last}");
    assert_eq!(last["env"]["SINDRI_KEY"], "${{ secrets.SINDRI_KEY }}");
    assert!(steps[..steps.len() - 1].iter().all(|step| !step.to_string().contains("secrets.")), "{text}");
    assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}));
}
