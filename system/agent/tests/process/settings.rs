//! Settings in layers, as the binary reads them, and every error in one line.

use std::path::Path;

use crate::support::{agent, error_line};

/// All required settings but the access key.
const REQUIRED: [&str; 6] = ["--name", "east", "--cluster", "demo", "--broker", "http://127.0.0.1:1"];

fn printed(command: &mut std::process::Command) -> String {
    let output = command.arg("--print-config").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn write(directory: &Path, text: &str) -> String {
    let file = directory.join("agent.toml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn print_config_shows_every_setting_with_value_and_source_and_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[agent]\nname = \"east\"\npolling_interval = 5\n[agent.brake]\nobjects = 9\nenabled = false\n";
    let file = write(directory.path(), text);
    let mut command = agent();
    command.args(["run", "--config", &file, "--polling-interval", "7", "--drift", "detect"]);
    command.env("SINDRI__AGENT__PAK", "brokkr_BRa_hidden").env("SINDRI__AGENT__NAME", "west");
    let expected = "\
agent.name                      west                      environment SINDRI__AGENT__NAME
agent.cluster_name              -                         default
agent.broker_url                -                         default
agent.broker_ca_file            -                         default
agent.pak                       ***                       environment SINDRI__AGENT__PAK
agent.pak_file                  -                         default
agent.kubeconfig                -                         default
agent.context                   -                         default
agent.polling_interval          7                         flag --polling-interval
agent.namespace                 -                         default
agent.reserved_namespaces       -                         default
agent.default_service_account   -                         default
agent.drift                     detect                    flag --drift
agent.brake.enabled             false                     file FILE:6
agent.brake.objects             9                         file FILE:5
agent.brake.percent             50                        default
agent.lease                     true                      default
agent.identity                  -                         default
agent.listen                    \"\"                        default
agent.log.form                  pretty                    default
agent.log.level                 info                      default
agent.otlp.endpoint             -                         default
";
    assert_eq!(printed(&mut command).replace(&file, "FILE"), expected);
}

#[test]
fn unknown_settings_are_rejected_in_every_layer() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "[agent]\npoling_interval = 5\n");
    let line = error_line(&agent().args(["--config", &file]).output().unwrap());
    assert!(
        line.ends_with(
            "agent.toml:2: there is no setting agent.poling_interval; the nearest is agent.polling_interval"
        )
    );
    let line = error_line(&agent().env("SINDRI__AGENT__PACK", "x").output().unwrap());
    assert!(line.contains("the nearest is SINDRI__AGENT__PAK"), "{line}");
    assert!(error_line(&agent().args(["--key", "brokkr_BRa_hidden"]).output().unwrap()).contains("--key"));
    assert!(error_line(&agent().arg("dance").output().unwrap()).contains("dance"));
}

#[test]
fn a_bad_value_is_named_with_what_is_expected() {
    for (flag, value, expected) in [
        (
            "--broker",
            "broker:3000",
            "agent.broker_url = \"broker:3000\" (flag --broker): must be like http://HOST:PORT",
        ),
        ("--broker", "https://me:hidden@broker", "agent.broker_url = \"https://***@broker\""),
        ("--polling-interval", "0", "must be a number from 1 to 86400"),
        ("--drift", "ignore", "must be one of off, detect, correct"),
        ("--brake-percent", "101", "must be a number from 0 to 100"),
        ("--namespace", "Shop", "must be the name of a namespace"),
        ("--listen", "everywhere", "must be like HOST:PORT, or empty"),
    ] {
        let line = error_line(&agent().args([flag, value]).output().unwrap());
        assert!(line.contains(expected) && !line.contains("hidden"), "{line}");
    }
}

#[test]
fn a_missing_setting_is_named_with_the_ways_to_set_it() {
    for (given, expected) in [
        (0, "agent.name is not set: set it with --name, SINDRI__AGENT__NAME or in the file"),
        (2, "agent.cluster_name is not set: set it with --cluster, SINDRI__AGENT__CLUSTER_NAME or in the file"),
        (4, "agent.broker_url is not set: set it with --broker, SINDRI__AGENT__BROKER_URL or in the file"),
        (6, "agent.pak is not set: set it with SINDRI__AGENT__PAK, or name a file that holds it with --pak-file"),
    ] {
        assert_eq!(
            error_line(&agent().args(&REQUIRED[..given]).output().unwrap()),
            format!("sindri-agent: {expected}")
        );
    }
}

#[test]
fn a_missing_cluster_configuration_gives_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig").display().to_string();
    let run = |more: &[&str]| {
        let mut command = agent();
        command.env("SINDRI__AGENT__PAK", "brokkr_BRa_hidden").args(REQUIRED).args(more);
        error_line(&command.output().unwrap())
    };
    assert!(
        run(&[]).contains("no kubeconfig is set with --kubeconfig, and the process does not run in a pod"),
        "{}",
        run(&[])
    );
    let line = run(&["--kubeconfig", &file]);
    assert!(line.contains(&format!("the kubeconfig {file}: ")) && line.contains("No such file"), "{line}");
    std::fs::write(&file, "clusters:\n- {\n").unwrap();
    assert!(run(&["--kubeconfig", &file]).contains(&format!("the kubeconfig {file}: ")));
    std::fs::write(&file, "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n").unwrap();
    let line = run(&["--kubeconfig", &file, "--context", "moon"]);
    assert!(line.contains("moon"), "{line}");
}

#[test]
fn every_command_needs_the_name_and_help_lists_commands_and_settings() {
    for command in ["run", "plan", "orphans"] {
        let line = error_line(&agent().arg(command).output().unwrap());
        assert!(line.starts_with("sindri-agent: agent.name is not set"), "{line}");
    }
    let output = |flag: &str| String::from_utf8(agent().arg(flag).output().unwrap().stdout).unwrap();
    assert_eq!(output("--version"), format!("sindri-agent {}\n", env!("CARGO_PKG_VERSION")));
    let help = output("--help");
    for part in
        ["--broker <URL>", "--pak-file <PATH>", "SINDRI__AGENT__PAK", "run ", "plan ", "orphans ", "[default: 30]"]
    {
        assert!(help.contains(part), "{part}\n{help}");
    }
    assert!(!help.contains("--pak ") && !help.contains("[default: ]"), "{help}");
}
