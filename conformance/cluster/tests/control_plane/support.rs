//! Directories for the clusters of a test, the command, and checks that nothing is left behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use sindri_cluster::{Cluster, ClusterError, Home, LocalProvider, Options, Provider};
use tempfile::TempDir;

pub const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-cluster");

/// Directory for the clusters of a test, with a cache directory of its own.
pub struct TestHome {
    files: TempDir,
}

impl TestHome {
    /// Shares the user's cache of binaries.
    pub fn new() -> Self {
        let home = Self::without_cache();
        std::os::unix::fs::symlink(Home::from_env().control_plane(), home.cache_home().control_plane()).unwrap();
        home
    }

    /// Has an empty cache of binaries.
    pub fn without_cache() -> Self {
        let home = Self { files: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(home.cache_home().path()).unwrap();
        home
    }

    /// Has a cache with links to every binary of the user's.
    pub fn with_copied_cache() -> Self {
        let home = Self::without_cache();
        let cache = Home::from_env().control_plane();
        for entry in std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let copy = home.cache_home().control_plane().join(entry.file_name().unwrap());
            std::fs::create_dir_all(&copy).unwrap();
            for file in std::fs::read_dir(&entry).unwrap().map(|file| file.unwrap().path()) {
                std::os::unix::fs::symlink(&file, copy.join(file.file_name().unwrap())).unwrap();
            }
        }
        home
    }

    pub fn path(&self) -> &Path {
        self.files.path()
    }

    pub fn cache_home(&self) -> Home {
        Home::at(self.path().join("cache/sindri"))
    }

    /// Returns the entry of the copied cache that has a program.
    pub fn entry_with(&self, program: &str, release: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.cache_home().control_plane()).unwrap().map(|entry| entry.unwrap().path());
        let mut fitting =
            entries.filter(|entry| entry.join(program).exists() && entry.to_str().unwrap().contains(release));
        fitting.next().unwrap()
    }

    /// Starts a cluster in this directory, with the user's cache.
    pub fn start(&self, options: Options) -> Result<Box<dyn Cluster>, ClusterError> {
        let options = Options { directory: Some(self.path().join("cluster")), ..options };
        LocalProvider::new(Home::from_env()).start(&options)
    }

    /// Returns the command with this home.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(COMMAND);
        command.args(arguments);
        self.set_environment(&mut command);
        command
    }

    /// Sets the environment of a program to this directory, except for Go's own cache, which would be empty here.
    pub fn set_environment(&self, command: &mut Command) {
        command.env("XDG_CACHE_HOME", self.path().join("cache")).env("TMPDIR", self.path());
        if let Ok(output) = Command::new("go").args(["env", "GOCACHE"]).output() {
            command.env("GOCACHE", text(&output.stdout).trim_end());
        }
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts `hold`, which ends when our pipe to it is closed, and waits until its cluster is ready.
    pub fn hold(&self, cluster: &str) -> Child {
        let mut holder = self.command(&["hold", "--cluster", cluster]);
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("READY ")), "no cluster");
        holder
    }

    /// Returns the command lines of the processes that have this directory in their arguments.
    pub fn processes(&self) -> Vec<String> {
        let marker = self.path().to_str().unwrap();
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(marker)).collect()
    }

    /// Returns the directories of clusters.
    pub fn directories(&self) -> Vec<PathBuf> {
        let listed =
            [self.path().to_owned(), self.cache_home().clusters()].into_iter().filter_map(|path| path.read_dir().ok());
        let paths = listed.flatten().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir() && path.file_name().unwrap() != "cache").collect()
    }

    /// Waits until neither a process nor a directory is left.
    pub fn assert_clean(&self) {
        wait_until("everything to be gone", || self.processes().is_empty() && self.directories().is_empty());
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the error of a start that must fail.
pub fn start_error(started: Result<Box<dyn Cluster>, ClusterError>) -> String {
    started.err().expect("it must not start").to_string()
}

/// Waits in real time.
#[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Checks every 100 ms for a minute.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        pause(100);
    }
    panic!("waited a minute for {what}");
}
