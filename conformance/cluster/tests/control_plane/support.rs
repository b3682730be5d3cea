//! Places for clusters, the command, and what is left of them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use sindri_cluster::{Cluster, ClusterError, Home, Local, Options, Provider};
use tempfile::TempDir;

pub const COMMAND: &str = env!("CARGO_BIN_EXE_sindri-cluster");

/// A directory for a test's clusters, and a home of its own that shares the user's cache.
pub struct Place {
    files: TempDir,
}

impl Place {
    /// With the user's cache.
    pub fn new() -> Self {
        let place = Self::without_cache();
        std::os::unix::fs::symlink(Home::of_user().control_plane(), place.home().control_plane()).unwrap();
        place
    }

    /// With an empty cache.
    pub fn without_cache() -> Self {
        let place = Self { files: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(place.home().path()).unwrap();
        place
    }

    /// With a cache that has links to every binary of the user's.
    pub fn with_copied_cache() -> Self {
        let place = Self::without_cache();
        let cache = Home::of_user().control_plane();
        for entry in std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let copy = place.home().control_plane().join(entry.file_name().unwrap());
            std::fs::create_dir_all(&copy).unwrap();
            for file in std::fs::read_dir(&entry).unwrap().map(|file| file.unwrap().path()) {
                std::os::unix::fs::symlink(&file, copy.join(file.file_name().unwrap())).unwrap();
            }
        }
        place
    }

    pub fn path(&self) -> &Path {
        self.files.path()
    }

    pub fn home(&self) -> Home {
        Home::at(self.path().join("cache/sindri"))
    }

    /// The entry of the copied cache that has a program.
    pub fn entry_with(&self, program: &str, release: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.home().control_plane()).unwrap().map(|entry| entry.unwrap().path());
        let mut fitting =
            entries.filter(|entry| entry.join(program).exists() && entry.to_str().unwrap().contains(release));
        fitting.next().unwrap()
    }

    /// Starts a cluster here, with the user's cache.
    pub fn start(&self, options: Options) -> Result<Box<dyn Cluster>, ClusterError> {
        let options = Options { directory: Some(self.path().join("cluster")), ..options };
        Local::new(Home::of_user()).start(&options)
    }

    /// The command with this home.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(COMMAND);
        command.args(arguments);
        self.inhabit(&mut command);
        command
    }

    /// Lets a program take this place for the user's home, but for Go's own cache, which would be empty here.
    pub fn inhabit(&self, command: &mut Command) {
        command.env("XDG_CACHE_HOME", self.path().join("cache")).env("TMPDIR", self.path());
        if let Ok(output) = Command::new("go").args(["env", "GOCACHE"]).output() {
            command.env("GOCACHE", text(&output.stdout).trim_end());
        }
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A program that holds a cluster and hangs on our leash; it has said that the cluster works.
    pub fn hold(&self, cluster: &str) -> Child {
        let mut holder = self.command(&["hold", "--cluster", cluster]);
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("READY ")), "no cluster");
        holder
    }

    /// The command lines of the processes that have this place among their arguments.
    pub fn processes(&self) -> Vec<String> {
        let marker = self.path().to_str().unwrap();
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(marker)).collect()
    }

    /// Directories of clusters.
    pub fn directories(&self) -> Vec<PathBuf> {
        let listed =
            [self.path().to_owned(), self.home().clusters()].into_iter().filter_map(|path| path.read_dir().ok());
        let paths = listed.flatten().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir() && path.file_name().unwrap() != "cache").collect()
    }

    /// Neither a process nor a directory is left, or will be in a moment.
    pub fn assert_left_clean(&self) {
        until("everything to be gone", || self.processes().is_empty() && self.directories().is_empty());
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The error of a start that has to fail.
pub fn refusal(started: Result<Box<dyn Cluster>, ClusterError>) -> String {
    started.err().expect("it must not start").to_string()
}

/// Lets real time pass.
#[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Looks every tenth of a second, a minute long.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        pause(100);
    }
    panic!("waited a minute for {what}");
}
