//! The commands `up`, `status`, `down` and `try`.

use std::process::Command;

use crate::support::{TestHome, text};

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_cluster_runs_until_down() {
    let home = TestHome::new();
    assert_eq!(text(&home.run(&["status"]).stdout), "no cluster runs\n");
    let output = home.run(&["up", "--cluster", "local", "--pristine"]);
    let output_text = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        output_text.starts_with("# local-1 is up: Kubernetes v1.35.4 (local) at https://127.0.0.1:"),
        "{output_text}"
    );
    let kubeconfig = output_text.lines().nth(1).unwrap().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
    let versions = Command::new("kubectl").args(["version", "--kubeconfig", &kubeconfig]).output().unwrap();
    assert!(text(&versions.stdout).contains("Server Version: v1.35.4"), "{}", text(&versions.stderr));
    let listed = text(&home.run(&["status"]).stdout);
    assert!(listed.lines().nth(1).unwrap().starts_with("local-1  local    v1.35.4"), "{listed}");
    assert!(listed.contains(" runs ") && listed.contains(&kubeconfig), "{listed}");
    let again = home.run(&["up", "--cluster", "local", "--name", "local-1"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("a cluster named \"local-1\" exists already"), "{}", text(&again.stderr));
    assert_eq!(text(&home.run(&["down"]).stdout), "local-1 is ended\n");
    home.assert_clean();
    assert_eq!(text(&home.run(&["status"]).stdout), "no cluster runs\n");
}

#[test]
fn errors_of_the_user_are_reported_in_one_line() {
    let home = TestHome::without_cache();
    let usage_error = |arguments: &[&str]| {
        let output = home.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert_eq!(usage_error(&["down"]), "sindri-cluster: no cluster runs\n");
    assert_eq!(usage_error(&["down", "mine"]), "sindri-cluster: there is no cluster \"mine\"\n");
    assert!(
        usage_error(&["up", "--cluster", "kubeconfig"]).contains("is an existing cluster: there is nothing to start")
    );
    assert!(
        usage_error(&["up", "--cluster", "minikube"])
            .contains("--cluster takes sim, local, container, kind, kubeconfig")
    );
    assert!(usage_error(&["up", "--cluster", "local", "--version", "1.30"]).contains("there are 1.35, 1.36"));
}

#[test]
fn a_missing_container_engine_is_reported_in_one_line() {
    let home = TestHome::without_cache();
    let nowhere = format!("unix://{}/docker.sock", home.path().display());
    let output = home.command(&["try", "--cluster", "container"]).env("DOCKER_HOST", nowhere).output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.starts_with("sindri-cluster: not run: container cannot run here: no container engine responds"),
        "{message}"
    );
    home.assert_clean();
}

#[test]
fn trying_a_simulated_cluster_leaves_nothing_behind() {
    let home = TestHome::without_cache();
    let output = home.run(&["try", "--cluster", "sim"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("was created; it is deleted now"), "{}", text(&output.stdout));
    home.assert_clean();
}

#[test]
fn a_simulated_cluster_starts_with_up_and_ends_with_down() {
    let home = TestHome::without_cache();
    let output = home.run(&["up", "--cluster", "sim"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("# sim-1 is up: "), "{}", text(&output.stdout));
    assert_eq!(text(&home.run(&["down", "sim-1"]).stdout), "sim-1 is ended\n");
    home.assert_clean();
}
