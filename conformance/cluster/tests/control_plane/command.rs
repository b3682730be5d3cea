//! `up`, `status` and `down`, as people type them.

use std::process::Command;

use crate::support::{Place, text};

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_cluster_stays_until_it_is_taken_down() {
    let place = Place::new();
    assert_eq!(text(&place.run(&["status"]).stdout), "no cluster runs\n");
    let output = place.run(&["up", "--cluster", "local", "--pristine"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.starts_with("# local-1 is up: Kubernetes v1.35.4 (local) at https://127.0.0.1:"), "{said}");
    let kubeconfig = said.lines().nth(1).unwrap().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
    let versions = Command::new("kubectl").args(["version", "--kubeconfig", &kubeconfig]).output().unwrap();
    assert!(text(&versions.stdout).contains("Server Version: v1.35.4"), "{}", text(&versions.stderr));
    let listed = text(&place.run(&["status"]).stdout);
    assert!(listed.lines().nth(1).unwrap().starts_with("local-1  local    v1.35.4"), "{listed}");
    assert!(listed.contains(" runs ") && listed.contains(&kubeconfig), "{listed}");
    let again = place.run(&["up", "--cluster", "local", "--name", "local-1"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("there is a cluster \"local-1\" already"), "{}", text(&again.stderr));
    assert_eq!(text(&place.run(&["down"]).stdout), "local-1 is ended\n");
    place.assert_left_clean();
    assert_eq!(text(&place.run(&["status"]).stdout), "no cluster runs\n");
}

#[test]
fn mistakes_are_answered_in_one_line() {
    let place = Place::without_cache();
    let mistake = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert_eq!(mistake(&["down"]), "sindri-cluster: no cluster runs\n");
    assert_eq!(mistake(&["down", "mine"]), "sindri-cluster: there is no cluster \"mine\"\n");
    assert!(mistake(&["up", "--cluster", "kubeconfig"]).contains("runs already: there is nothing to start"));
    assert!(
        mistake(&["up", "--cluster", "minikube"]).contains("--cluster takes sim, local, container, kind, kubeconfig")
    );
    assert!(mistake(&["up", "--cluster", "local", "--version", "1.30"]).contains("there are 1.35, 1.36"));
}

#[test]
fn a_machine_without_a_container_engine_is_told_so_in_one_line() {
    let place = Place::without_cache();
    let nowhere = format!("unix://{}/docker.sock", place.path().display());
    let output = place.command(&["try", "--cluster", "container"]).env("DOCKER_HOST", nowhere).output().unwrap();
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    assert!(
        words.starts_with("sindri-cluster: not run: container cannot run here: no container engine answers"),
        "{words}"
    );
    place.assert_left_clean();
}

#[test]
fn a_simulated_cluster_is_tried_and_leaves_nothing() {
    let place = Place::without_cache();
    let output = place.run(&["try", "--cluster", "sim"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("was created; it is deleted now"), "{}", text(&output.stdout));
    place.assert_left_clean();
}

#[test]
fn a_simulated_cluster_goes_up_and_down() {
    let place = Place::without_cache();
    let output = place.run(&["up", "--cluster", "sim"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("# sim-1 is up: "), "{}", text(&output.stdout));
    assert_eq!(text(&place.run(&["down", "sim-1"]).stdout), "sim-1 is ended\n");
    place.assert_left_clean();
}
