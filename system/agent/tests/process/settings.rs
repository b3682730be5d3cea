//! Settings in layers, as the binary reads them, and every mistake in one line.

use std::path::Path;

use crate::support::{agent, mistake};

const ENOUGH: [&str; 6] = ["--name", "east", "--cluster", "demo", "--broker", "http://127.0.0.1:1"];

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
fn print_config_shows_every_setting_its_value_and_its_source_and_no_key() {
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
agent.drift                     detect                    flag --drift
agent.brake.enabled             false                     file FILE:6
agent.brake.objects             9                         file FILE:5
agent.brake.percent             50                        default
agent.lease                     true                      default
agent.identity                  -                         default
agent.listen                    \"\"                        default
agent.log.form                  pretty                    default
agent.log.level                 info                      default
";
    assert_eq!(printed(&mut command).replace(&file, "FILE"), expected);
}

#[test]
fn what_nobody_knows_is_refused_in_every_layer() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "[agent]\npoling_interval = 5\n");
    let words = mistake(&agent().args(["--config", &file]).output().unwrap());
    assert!(
        words.ends_with(
            "agent.toml:2: there is no setting agent.poling_interval; the nearest is agent.polling_interval"
        )
    );
    let words = mistake(&agent().env("SINDRI__AGENT__PACK", "x").output().unwrap());
    assert!(words.contains("the nearest is SINDRI__AGENT__PAK"), "{words}");
    assert!(mistake(&agent().args(["--key", "brokkr_BRa_hidden"]).output().unwrap()).contains("--key"));
    assert!(mistake(&agent().arg("dance").output().unwrap()).contains("dance"));
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
        let words = mistake(&agent().args([flag, value]).output().unwrap());
        assert!(words.contains(expected) && !words.contains("hidden"), "{words}");
    }
}

#[test]
fn what_is_missing_is_named_with_the_ways_to_say_it() {
    for (given, expected) in [
        (0, "agent.name is not set: say it with --name, SINDRI__AGENT__NAME or in the file"),
        (2, "agent.cluster_name is not set: say it with --cluster, SINDRI__AGENT__CLUSTER_NAME or in the file"),
        (4, "agent.broker_url is not set: say it with --broker, SINDRI__AGENT__BROKER_URL or in the file"),
        (6, "agent.pak is not set: say it with SINDRI__AGENT__PAK, or name a file that holds it with --pak-file"),
    ] {
        assert_eq!(mistake(&agent().args(&ENOUGH[..given]).output().unwrap()), format!("sindri-agent: {expected}"));
    }
}

#[test]
fn a_cluster_that_cannot_be_found_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig").display().to_string();
    let run = |more: &[&str]| {
        let mut command = agent();
        command.env("SINDRI__AGENT__PAK", "brokkr_BRa_hidden").args(ENOUGH).args(more);
        mistake(&command.output().unwrap())
    };
    assert!(run(&[]).contains("no kubeconfig was named with --kubeconfig, and this is no pod"), "{}", run(&[]));
    let words = run(&["--kubeconfig", &file]);
    assert!(words.contains(&format!("the kubeconfig {file}: ")) && words.contains("No such file"), "{words}");
    std::fs::write(&file, "clusters:\n- {\n").unwrap();
    assert!(run(&["--kubeconfig", &file]).contains(&format!("the kubeconfig {file}: ")));
    std::fs::write(&file, "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n").unwrap();
    let words = run(&["--kubeconfig", &file, "--context", "moon"]);
    assert!(words.contains("moon"), "{words}");
}

#[test]
fn every_command_needs_to_know_who_it_is_and_help_says_what_there_is() {
    for command in ["run", "plan", "orphans"] {
        let words = mistake(&agent().arg(command).output().unwrap());
        assert!(words.starts_with("sindri-agent: agent.name is not set"), "{words}");
    }
    let said = |flag: &str| String::from_utf8(agent().arg(flag).output().unwrap().stdout).unwrap();
    assert_eq!(said("--version"), format!("sindri-agent {}\n", env!("CARGO_PKG_VERSION")));
    let help = said("--help");
    for part in
        ["--broker <URL>", "--pak-file <PATH>", "SINDRI__AGENT__PAK", "run ", "plan ", "orphans ", "[default: 30]"]
    {
        assert!(help.contains(part), "{part}\n{help}");
    }
    assert!(!help.contains("--pak ") && !help.contains("[default: ]"), "{help}");
}
