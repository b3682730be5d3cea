//! Runs the command, and finds the processes that it started.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

pub const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-conformance");

/// Directory for the files of a run. Every process that the run starts has a path in it as an argument, by which it is found.
pub struct TestRun {
    files: TempDir,
}

impl TestRun {
    pub fn new() -> Self {
        for name in ["sindri-broker", "sindri-agent", "sindri-apiserver", "sindri"] {
            assert!(
                Path::new(COMMAND).with_file_name(name).exists(),
                "run `cargo build -p sindri-broker -p sindri-agent -p sindri-apiserver -p sindri-cli` first: \
                 {name} is missing"
            );
        }
        Self { files: tempfile::tempdir().unwrap() }
    }

    /// Returns the command with this directory for temporary files.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(COMMAND);
        command.args(arguments).current_dir(project()).env("TMPDIR", self.files.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Returns the command lines of the processes that use this directory.
    pub fn processes(&self) -> Vec<String> {
        let marker = self.files.path().to_str().unwrap();
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains(marker))
            .collect()
    }

    /// Returns the number of them that are programs of the project, without the shells that watch them.
    pub fn programs(&self) -> usize {
        let is_ours = |line: &&String| line.split(' ').next().is_some_and(|program| program.contains("/sindri-"));
        self.processes().iter().filter(is_ours).count()
    }

    /// Checks that neither a process nor a file is left.
    pub fn assert_clean(&self) {
        assert_eq!(self.processes(), Vec::<String>::new());
        assert_eq!(self.files(), Vec::<PathBuf>::new());
    }

    pub fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.files.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Returns the project's directory.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Creates a project directory with one scenario and the project's bundles.
pub fn root_with(scenario: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("scenarios")).unwrap();
    std::fs::create_dir_all(root.path().join("fixtures")).unwrap();
    std::os::unix::fs::symlink(project().join("fixtures/bundles"), root.path().join("fixtures/bundles")).unwrap();
    std::fs::write(root.path().join("scenarios/shop.yaml"), scenario).unwrap();
    root
}

/// Returns a scenario with one agent that starts with an applied stack and continues with these lines.
pub fn scenario(rest: &str) -> String {
    format!(
        "title: a scenario\nproves: [GUIDE-01]\nfleet: {{agents: [east]}}\nreal: true\nsteps:\n\
         \x20 - submit: {{stack: shop, bundle: shop-v1.yaml}}\n\
         \x20 - await: {{stack: shop, applied: 1}}\n{rest}"
    )
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks every 100 ms for 30 seconds.
#[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..300 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("waited half a minute for {what}");
}
