//! The example for CI in deploy/ci/, with the key of a generator only.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, expect_failure};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/ci");

fn start_deployment(broker: &Broker, key: &Path, arguments: &[&str]) -> Child {
    let programs = Path::new(env!("CARGO_BIN_EXE_sindri")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut command = Command::new(format!("{EXAMPLE}/deploy.sh"));
    command.env_clear().env("PATH", path).env("SINDRI_BROKER", &broker.address).env("DEPLOY_TIMEOUT", "20s");
    command.env("SINDRI_KEY", std::fs::read_to_string(key).unwrap().trim()).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn deploy(broker: &Broker, key: &Path, arguments: &[&str]) -> Output {
    start_deployment(broker, key, arguments).wait_with_output().unwrap()
}

/// Creates a generator with an agent and returns the file of its key.
fn create_generator(broker: &Broker, agent: &str) -> PathBuf {
    let key = broker.directory.path().join("ci.key");
    broker.run_successfully(&["generator", "create", "ci", "--agent", agent, "--new-key-file", key.to_str().unwrap()]);
    key
}

#[test]
fn a_deployment_with_the_key_of_a_generator_ends_when_the_stack_is_ready_or_has_failed() {
    let broker = Broker::start();
    let agent = Agent::active(&broker, "east", "prod");
    let key = create_generator(&broker, "east");
    let file = broker.write_file("shop.yaml", BUNDLE);
    let arguments = ["shop", file.to_str().unwrap(), "east"];

    let first = start_deployment(&broker, &key, &arguments);
    let sequence = agent.report_conditions(0, &["+Applied", "+Ready"]);
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{first:?}");
    let document: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!((&document["changed"], &document["revision"]["number"]), (&true.into(), &1.into()));

    let again = deploy(&broker, &key, &arguments);
    let document: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(again.status.success() && document["changed"] == false, "{again:?}");

    std::fs::write(&file, BUNDLE.replace("name: a", "name: other")).unwrap();
    let failed = start_deployment(&broker, &key, &arguments);
    agent.report_conditions(sequence, &["-Applied Failed no room"]);
    let failed = expect_failure(&failed.wait_with_output().unwrap(), 1);
    assert!(failed.ends_with("sindri: stack shop has failed on prod (Failed: no room)"), "{failed}");
}

#[test]
fn a_deployment_that_is_not_valid_submits_nothing() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    broker.run_successfully(&["agent", "create", "west", "--cluster", "west"]);
    let key = create_generator(&broker, "east");
    let file = broker.write_file("shop.yaml", BUNDLE);
    let file = file.to_str().unwrap();
    let broken = broker.write_file("broken.yaml", "kind: ConfigMap\n");
    let invalid = expect_failure(&deploy(&broker, &key, &["shop", broken.to_str().unwrap(), "east"]), 2);
    assert!(invalid.contains("broken.yaml: document 1, line 1"), "{invalid}");
    assert_eq!(broker.run_successfully(&["stack", "list", "-o", "name"]), "");
    let unregistered = expect_failure(&deploy(&broker, &key, &["shop", file, "west"]), 2);
    assert!(unregistered.contains("agent west is not registered with the generator of stack shop"), "{unregistered}");
    let history = broker.run_successfully(&["history", "shop", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&history).unwrap(), serde_json::json!([]));
    let other = broker.write_file("other.key", "brokkr_BRabcdef_nothing");
    let rejected = expect_failure(&deploy(&broker, &other, &["shop", file, "east"]), 2);
    assert!(rejected.contains("the broker does not accept the key"), "{rejected}");
    expect_failure(&deploy(&broker, &key, &["shop", file]), 2);
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

/// Runs a command and returns its result.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

#[test]
fn the_workflow_installs_sindri_from_an_archive_of_a_release() {
    let text = std::fs::read_to_string(format!("{EXAMPLE}/github-workflow.yaml")).unwrap();
    let workflow: Value = serde_yaml::from_str(&text).unwrap();
    let steps = workflow["jobs"]["deploy"]["steps"].as_array().unwrap();
    let install = steps.iter().find(|step| step["name"] == "Install sindri").unwrap();
    let work = tempfile::tempdir().unwrap();
    let (work, name) = (work.path(), "sindri-1.2.3-linux-x86_64");
    // As `cargo xtask dist` makes it: everything is below a directory with the version.
    for file in ["bin/sindri", "bin/sindri-agent", "bin/sindri-broker", "man/man1/sindri.1", "completions/sindri.bash"]
    {
        let path = work.join(name).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "#!/bin/sh\necho installed\n").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    run(Command::new("tar").arg("-C").arg(work).args(["-czf"]).arg(work.join("dist.tar.gz")).arg(name));
    let sum = run(Command::new("sha256sum").arg(work.join("dist.tar.gz"))).stdout;
    let sum = String::from_utf8(sum).unwrap().split(' ').next().unwrap().to_owned();
    let mut step = Command::new("bash");
    step.args(["-e", "-c", install["run"].as_str().unwrap()]).current_dir(work).env("HOME", work.join("home"));
    step.env("GITHUB_PATH", work.join("path")).env("SINDRI_ARCHIVE_SHA256", &sum);
    step.env("SINDRI_ARCHIVE", format!("file://{}", work.join("dist.tar.gz").display()));
    run(&mut step);
    let directory = std::fs::read_to_string(work.join("path")).unwrap();
    let installed = PathBuf::from(directory.trim());
    assert_eq!(run(&mut Command::new(installed.join("sindri"))).stdout, b"installed\n");
    assert_eq!(std::fs::read_dir(&installed).unwrap().count(), 1, "only sindri is needed");
    let damaged = step.env("SINDRI_ARCHIVE_SHA256", "0".repeat(64)).output().unwrap();
    assert!(!damaged.status.success(), "{damaged:?}");
}
