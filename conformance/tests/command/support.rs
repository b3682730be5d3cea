//! Running the command, and finding the processes that it started.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

pub const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-conformance");

/// A place for a run's files. Every process that the run starts has the path of one of them as an argument, and
/// so can be told from all others.
pub struct Place {
    files: TempDir,
}

impl Place {
    pub fn new() -> Self {
        for name in ["sindri-broker", "sindri-agent", "sindri-apiserver", "sindri"] {
            assert!(
                Path::new(COMMAND).with_file_name(name).exists(),
                "run `cargo build --release -p sindri-broker -p sindri-agent -p sindri-apiserver -p sindri-cli` first: \
                 {name} is missing"
            );
        }
        Self { files: tempfile::tempdir().unwrap() }
    }

    /// The command with this place for its files.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(COMMAND);
        command.args(arguments).current_dir(project()).env("TMPDIR", self.files.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The command lines of the processes that use this place.
    pub fn processes(&self) -> Vec<String> {
        let marker = self.files.path().to_str().unwrap();
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains(marker))
            .collect()
    }

    /// How many of them are programs of ours, and not what watches over these.
    pub fn programs(&self) -> usize {
        let is_ours = |line: &&String| line.split(' ').next().is_some_and(|program| program.contains("/sindri-"));
        self.processes().iter().filter(is_ours).count()
    }

    /// Neither a process nor a file is left.
    pub fn assert_left_clean(&self) {
        assert_eq!(self.processes(), Vec::<String>::new());
        assert_eq!(self.files(), Vec::<PathBuf>::new());
    }

    pub fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.files.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// The project's directory.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A project's directory with one story and the project's bundles.
pub fn root_with(story: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("scenarios")).unwrap();
    std::fs::create_dir_all(root.path().join("fixtures")).unwrap();
    std::os::unix::fs::symlink(project().join("fixtures/bundles"), root.path().join("fixtures/bundles")).unwrap();
    std::fs::write(root.path().join("scenarios/story.yaml"), story).unwrap();
    root
}

/// A story of one agent that begins with an applied stack and goes on with these lines.
pub fn story(rest: &str) -> String {
    format!(
        "title: a story\nproves: [GUIDE-01]\nfleet: {{agents: [east]}}\nreal: true\nsteps:\n\
         \x20 - submit: {{stack: shop, bundle: shop-v1.yaml}}\n\
         \x20 - await: {{stack: shop, applied: 1}}\n{rest}"
    )
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Looks every tenth of a second, half a minute long.
#[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..300 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("waited half a minute for {what}");
}
