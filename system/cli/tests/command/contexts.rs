//! `sindri context`, and the broker and key that a command uses.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Broker, expect_failure, parse_cells};

/// A user with a directory of configuration and no variables.
struct User(tempfile::TempDir);

impl User {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sindri"));
        command.env_clear().env("XDG_CONFIG_HOME", self.0.path()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn run_successfully(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command with this text on standard input.
    fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        use std::io::Write;
        let mut command = self.command(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        process.wait_with_output().unwrap()
    }
}

#[test]
fn a_context_has_the_broker_and_the_key_of_a_command() {
    let (one, other, user) = (Broker::start(), Broker::start(), User::new());
    let key = std::fs::read_to_string(one.key_path()).unwrap();
    let created = user.run_with_input(&["context", "set", "one", "--broker", &one.address], &key);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    assert!(!String::from_utf8_lossy(&created.stdout).contains(key.trim()), "the key is printed");
    let key_file = other.key_path();
    let key_file = key_file.to_str().unwrap();
    user.run_successfully(&["context", "set", "other", "--broker", &other.address, "--key-file", key_file]);

    user.run_successfully(&["agent", "create", "east", "--cluster", "prod"]);
    assert_eq!(parse_cells(&user.run_successfully(&["agent", "list"])).len(), 1);
    assert_eq!(parse_cells(&user.run_successfully(&["agent", "list", "--context", "other"])).len(), 0);
    assert_eq!(user.run_successfully(&["context", "use", "other"]), "context other is the current one\n");
    assert_eq!(parse_cells(&user.run_successfully(&["agent", "list"])).len(), 0);
    let output = user.command(&["agent", "list"]).env("SINDRI_CONTEXT", "one").output().unwrap();
    assert_eq!(parse_cells(&String::from_utf8(output.stdout).unwrap()).len(), 1);

    let listed = user.run_successfully(&["context", "list"]);
    let credential = format!("key file {key_file}");
    let expected = [vec!["one", "-", &one.address, "key"], vec!["other", "yes", &other.address, &credential]];
    assert_eq!(parse_cells(&listed), expected);
    let shown: Value = serde_json::from_str(&user.run_successfully(&["context", "show", "one", "-o", "json"])).unwrap();
    assert_eq!((&shown["broker"], &shown["credential"]), (&one.address.as_str().into(), &"key".into()));
    user.run_successfully(&["context", "delete", "other"]);
    assert_eq!(user.run_successfully(&["context", "list", "-o", "name"]), "context/one\n");
}

#[test]
fn the_file_with_a_key_is_for_its_owner_only() {
    let (broker, user) = (Broker::start(), User::new());
    let key = std::fs::read_to_string(broker.key_path()).unwrap();
    user.run_with_input(&["context", "set", "one", "--broker", &broker.address], &key);
    let path = user.0.path().join("sindri/config.toml");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = expect_failure(&user.run(&["agent", "list"]), 2);
    assert!(refused.contains("other users may read or write it (mode 644): run chmod 600 "), "{refused}");
}

#[test]
fn flags_take_precedence_and_the_key_of_a_context_stays_with_its_broker() {
    let (one, other, user) = (Broker::start(), Broker::start(), User::new());
    let key = std::fs::read_to_string(one.key_path()).unwrap();
    user.run_with_input(&["context", "set", "one", "--broker", &one.address], &key);
    let refused = expect_failure(&user.run(&["agent", "list", "--broker", &other.address]), 2);
    let expected = format!("sindri: the key of context one is for {}, and not for {}", one.address, other.address);
    assert!(refused.starts_with(&expected), "{refused}");
    let key_file = other.key_path();
    user.run_successfully(&["agent", "list", "--broker", &other.address, "--key-file", key_file.to_str().unwrap()]);
    let unknown = expect_failure(&user.run(&["agent", "list", "--context", "on"]), 2);
    assert_eq!(unknown, "sindri: there is no context on: did you mean one?; sindri context list shows all");
    let invalid = expect_failure(&user.run(&["context", "set", "../a", "--broker", &one.address]), 2);
    assert!(invalid.contains("is not the name of a context"), "{invalid}");
    let incomplete = expect_failure(&user.run(&["context", "set", "a", "--broker", "localhost"]), 2);
    assert!(incomplete.contains("is not the URL of a broker"), "{incomplete}");
}

#[test]
fn a_context_for_another_broker_does_not_keep_the_token_of_a_login() {
    let user = User::new();
    let token = user.0.path().join("sindri/tokens/a.json");
    let set = |broker: &str| user.run_successfully(&["context", "set", "a", "--broker", broker]);
    set("https://one.example");
    std::fs::create_dir_all(token.parent().unwrap()).unwrap();
    std::fs::write(&token, "{}").unwrap();
    set("https://one.example");
    assert!(token.exists());
    set("https://other.example");
    assert!(!token.exists());
}

#[test]
fn an_empty_variable_is_not_a_context_and_not_a_key() {
    let (broker, user) = (Broker::start(), User::new());
    let command = |key: &str| {
        let mut command = user.command(&["stack", "list"]);
        command.env("SINDRI_BROKER", &broker.address).env("SINDRI_CONTEXT", "").env("SINDRI_KEY", key);
        command.output().unwrap()
    };
    assert!(command(std::fs::read_to_string(broker.key_path()).unwrap().trim()).status.success());
    assert!(expect_failure(&command(""), 2).contains("the access key is empty"));
}

#[test]
fn a_typed_context_is_used_instead_of_the_variables() {
    let (staging, production, user) = (Broker::start(), Broker::start(), User::new());
    let key_of = |broker: &Broker| std::fs::read_to_string(broker.key_path()).unwrap().trim().to_owned();
    user.run_with_input(&["context", "set", "staging", "--broker", &staging.address], &key_of(&staging));
    for broker in [&staging, &production] {
        broker.run_successfully(&["stack", "create", "shop"]);
    }
    let exported = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command.env("SINDRI_BROKER", &production.address).env("SINDRI_KEY", key_of(&production));
        command.output().unwrap()
    };
    let count = |broker: &Broker| parse_cells(&broker.run_successfully(&["stack", "list"])).len();
    for position in [&["--context", "staging", "stack", "list"][..], &["stack", "list", "--context", "staging"]] {
        assert!(exported(position).status.success(), "{position:?}");
    }
    assert!(exported(&["--context", "staging", "delete", "shop"]).status.success());
    assert_eq!((count(&staging), count(&production)), (0, 1), "nothing is deleted in production");
    assert!(exported(&["delete", "shop"]).status.success());
    assert_eq!(count(&production), 0, "the variables replace the current context");

    let note = "note: SINDRI_BROKER and SINDRI_KEY are set and used instead of the current context";
    for arguments in [&["context", "list"][..], &["context", "use", "staging"]] {
        let output = exported(arguments);
        assert!(String::from_utf8_lossy(&output.stderr).starts_with(note), "{arguments:?}: {output:?}");
        assert!(user.run(arguments).stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_key_in_a_variable_goes_to_no_broker_but_its_own() {
    let (one, other, user) = (Broker::start(), Broker::start(), User::new());
    let key_of = |broker: &Broker| std::fs::read_to_string(broker.key_path()).unwrap().trim().to_owned();
    user.run_with_input(&["context", "set", "one", "--broker", &one.address], &key_of(&one));
    let half = user.command(&["stack", "list"]).env("SINDRI_KEY", key_of(&other)).output().unwrap();
    let half = expect_failure(&half, 2);
    assert!(half.starts_with("sindri: SINDRI_KEY is set without SINDRI_BROKER, and context one is for "), "{half}");
    let mut command = user.command(&["stack", "list", "--broker", "http://127.0.0.1:9"]);
    command.env("SINDRI_BROKER", &other.address).env("SINDRI_KEY", key_of(&other));
    let withheld = expect_failure(&command.output().unwrap(), 2);
    assert!(withheld.starts_with("sindri: the key "), "{withheld}");
    let mut command = user.command(&["stack", "list", "--broker", &one.address]);
    command.env("SINDRI_BROKER", &other.address).env("SINDRI_KEY", key_of(&other));
    assert!(command.output().unwrap().status.success(), "the context has the key of its broker");
}

#[test]
fn a_key_in_a_variable_is_not_stored_in_a_context() {
    let (broker, user) = (Broker::start(), User::new());
    let key_file = broker.key_path();
    let key = std::fs::read_to_string(&key_file).unwrap();
    for (variable, value) in [("SINDRI_KEY", key.trim()), ("SINDRI_KEY_FILE", key_file.to_str().unwrap())] {
        let mut command = user.command(&["context", "set", "staging", "--broker", "https://staging.example"]);
        let refused = expect_failure(&command.env(variable, value).output().unwrap(), 2);
        assert!(refused.starts_with(&format!("sindri: {variable} is set, and a context does not store")), "{refused}");
        assert_eq!(user.run_successfully(&["context", "list", "-o", "name"]), "");
    }
    let typed = ["context", "set", "one", "--broker", &broker.address, "--key-file", key_file.to_str().unwrap()];
    assert!(user.command(&typed).env("SINDRI_KEY", "production").output().unwrap().status.success());
    assert!(user.run(&["stack", "list"]).status.success());
    assert!(!std::fs::read_to_string(user.0.path().join("sindri/config.toml")).unwrap().contains("production"));
}

#[test]
fn the_token_of_a_login_is_sent_to_the_broker_of_the_login_only() {
    let (broker, user) = (Broker::start(), User::new());
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let path = user.0.path().join("sindri/token.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // The end of this token is in the year 2100.
    let token = |broker: &Value| {
        let token = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.c2lnbmVk";
        serde_json::json!({"broker": broker, "issuer": "https://id.example", "client_id": "sindri",
            "token_endpoint": "https://id.example/token", "id_token": token, "refresh_token": null})
    };
    let write = |broker: Value| {
        std::fs::write(&path, token(&broker).to_string()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let typed = format!("http://{}", other.local_addr().unwrap());
    for own in [Value::from(broker.address.clone()), Value::Null] {
        write(own);
        let refused = expect_failure(&user.run(&["stack", "list", "--broker", &typed]), 2);
        assert!(refused.contains("run sindri login with this --broker"), "{refused}");
        assert!(other.accept().is_err(), "nothing is sent to the other broker");
    }
    write(broker.address.clone().into());
    let sent = expect_failure(&user.run(&["stack", "list", "--broker", &broker.address]), 2);
    assert!(sent.contains("the broker does not accept the key"), "the token is sent to its own broker: {sent}");
}

#[test]
fn empty_variables_and_a_home_directory_that_cannot_be_read_do_not_matter() {
    let (broker, user) = (Broker::start(), User::new());
    let key = std::fs::read_to_string(broker.key_path()).unwrap();
    let mut command = user.command(&["stack", "list"]);
    command.env("SINDRI_BROKER", &broker.address).env("SINDRI_KEY", key.trim());
    for name in ["SINDRI_KEY_FILE", "SINDRI_BROKER_CA_FILE", "SINDRI_TOKEN_FILE", "SINDRI_CONTEXT"] {
        command.env(name, "");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = command.env_remove("XDG_CONFIG_HOME").env("HOME", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(expect_failure(&user.run(&["stack", "list", "--key-file", ""]), 2), "sindri: --key-file is empty");
    let mut command = user.command(&["context", "list"]);
    command.env("SINDRI_BROKER", &broker.address).env("SINDRI_CONTEXT", "staging");
    let note = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(note.contains("\nnote: SINDRI_BROKER is set and used instead of SINDRI_CONTEXT; "), "{note}");
}
