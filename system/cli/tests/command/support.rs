//! A broker that ends with the test, and the command as a process.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub const BUNDLE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";

/// A broker that ends with the test.
pub struct Broker {
    process: Child,
    pub address: String,
    pub directory: TempDir,
}

impl Broker {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a broker with further flags.
    pub fn start_with(flags: &[&str]) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_sindri")).with_file_name("sindri-broker");
        assert!(program.exists(), "run `cargo build -p sindri-broker` first: {} is missing", program.display());
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite:{}", directory.path().join("sindri.db").display());
        let encryption_key = directory.path().join("encryption.key");
        std::fs::write(&encryption_key, "ab".repeat(32)).unwrap();
        std::fs::set_permissions(&encryption_key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut process = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--log", "off", "--database-url", &database, "--admin-key-file"])
            .arg(directory.path().join("key"))
            .arg("--webhooks-encryption-key-file")
            .arg(encryption_key)
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.unwrap().strip_prefix("READY ").map(str::to_owned));
        Self { process, address: ready.expect("the broker did not start"), directory }
    }

    /// Returns the path of the administrator's key.
    pub fn key_path(&self) -> PathBuf {
        self.directory.path().join("key")
    }

    pub fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        run_sindri(&self.address, &self.key_path(), arguments)
    }

    pub fn run_successfully(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command whose output is a closed pipe, as with `grep -q`.
    pub fn run_with_closed_pipe(&self, arguments: &[&str]) -> Output {
        let mut command = command(&self.address, &self.key_path(), arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(process.stdout.take());
        process.wait_with_output().unwrap()
    }

    /// Returns the message of a command with invalid usage.
    pub fn expect_usage_error(&self, arguments: &[&str]) -> String {
        expect_failure(&self.run(arguments), 2)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

pub fn run_sindri(address: &str, key_file: &Path, arguments: &[&str]) -> Output {
    command(address, key_file, arguments).output().unwrap()
}

pub fn command(address: &str, key_file: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sindri"));
    // Contexts of the person who runs the tests have no effect.
    command.env("XDG_CONFIG_HOME", key_file.with_file_name("config")).env_remove("SINDRI_CONTEXT");
    command.env_remove("SINDRI_KEY").env("SINDRI_BROKER", address).env("SINDRI_KEY_FILE", key_file).args(arguments);
    command
}

/// Returns the message of a command that fails with this exit code, without the line with the next step.
pub fn expect_failure(output: &Output, code: i32) -> String {
    split_advice(output, code).0
}

/// Returns the next step of a command that fails with this exit code.
pub fn expect_advice(output: &Output, code: i32) -> String {
    split_advice(output, code).1.expect("there is no next step")
}

fn split_advice(output: &Output, code: i32) -> (String, Option<String>) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    match text.trim_end().rsplit_once("\nnext: ") {
        Some((message, advice)) => (message.to_owned(), Some(advice.to_owned())),
        None => (text.trim_end().to_owned(), None),
    }
}

/// Returns the cells of each line of a table.
pub fn parse_cells(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .skip(1)
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect()
}
