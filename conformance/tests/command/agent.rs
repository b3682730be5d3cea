//! Errors in the agent's configuration: exit code 2 and one line.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use sindri_cluster::{Options, Provider};
use sindri_conformance::binaries::Binaries;
use sindri_conformance::runtime::InterruptibleRuntime;
use sindri_conformance::workspace::Workspace;

use crate::support::{COMMAND, TestRun, text};

/// Runs an agent that must exit with 2, and returns its last line.
fn configuration_error(workspace: &Workspace, broker: &str, key: &str, kubeconfig: &Path) -> String {
    let output = Command::new(&workspace.binaries().agent)
        .args(["--name", "east", "--cluster", "east", "--broker", broker, "--kubeconfig"])
        .arg(kubeconfig)
        .env("SINDRI__AGENT__PAK", key)
        .output()
        .unwrap();
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    printed.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_wrong_key_an_unknown_agent_and_a_missing_kubeconfig_are_named() {
    drop(TestRun::new());
    let binaries = Binaries::find(Path::new(COMMAND).parent().unwrap()).unwrap();
    let workspace = Workspace::new(binaries, Rc::new(InterruptibleRuntime::new().unwrap())).unwrap();
    let broker = workspace.start_broker().unwrap();
    let cluster = workspace.sim_provider().start(&Options::default()).unwrap();

    let message = configuration_error(&workspace, &broker.url, "brokkr_BRwrong1_nothing", &cluster.access().kubeconfig);
    assert!(
        message.contains("cannot find agent east of cluster east: the broker does not accept the key"),
        "{message}"
    );

    let message = configuration_error(&workspace, &broker.url, &broker.key, &cluster.access().kubeconfig);
    assert!(message.contains("cannot find agent east of cluster east: the broker responded with 404"), "{message}");

    let message = configuration_error(&workspace, &broker.url, &broker.key, &workspace.path().join("none"));
    assert!(message.contains("none: "), "{message}");
    assert!(message.contains("No such file"), "{message}");
}
