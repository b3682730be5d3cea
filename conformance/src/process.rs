//! One child process with its output in a log file. Dropping it sends SIGTERM, and SIGKILL if it does not end in time.
//!
//! A process is signalled only before it is reaped, so that its id cannot belong to another process.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use crate::keys::hide_keys;
use crate::orphan_cleanup::OrphanCleanup;
use crate::runtime::{InterruptibleRuntime, WaitError};

/// Timeout until a process is ready.
const READY_MAX: Duration = Duration::from_secs(30);
/// Time for a process to end before it is killed.
const END_MAX: Duration = Duration::from_secs(5);
/// Time between two checks of a process.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Prefix of the line that a process prints when it listens, with its address.
const READY: &str = "READY ";
/// Lines of a log in an error.
const TAIL_LINES: usize = 15;

/// Failure of a process.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// It cannot be started.
    #[error("{name} cannot be started: {source}")]
    Start {
        /// Name of the process.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// It ended unexpectedly.
    #[error("{name} ended unexpectedly: {status}\n{tail}")]
    Ended {
        /// Name of the process.
        name: String,
        /// Exit status.
        status: ExitStatus,
        /// Last lines of its log.
        tail: String,
    },
    /// It did not become ready.
    #[error("{name} did not become ready: {source}\n{tail}")]
    NotReady {
        /// Name of the process.
        name: String,
        /// Cause.
        source: WaitError,
        /// Last lines of its log.
        tail: String,
    },
}

/// Parameters of a start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name for messages.
    pub name: String,
    /// Binary.
    pub program: PathBuf,
    /// Arguments.
    pub arguments: Vec<OsString>,
    /// Additional environment variables, such as keys, which must not be visible in arguments.
    pub environment: Vec<(&'static str, String)>,
    /// Log file.
    pub log: PathBuf,
}

/// A child process, running or ended.
pub struct Process {
    launch: Launch,
    child: Option<Child>,
    /// Kills it if this program is killed.
    cleanup: Option<OrphanCleanup>,
    /// Length of the log at the last start: earlier output is ignored.
    log_start: usize,
}

impl Process {
    /// Starts a process.
    pub fn start(launch: Launch) -> Result<Self, ProcessError> {
        let mut process = Self { launch, child: None, cleanup: None, log_start: 0 };
        process.restart()?;
        Ok(process)
    }

    /// Starts it again if it does not run.
    pub fn restart(&mut self) -> Result<(), ProcessError> {
        if self.child.is_none() {
            self.log_start = self.log().len();
            let name = self.launch.name.clone();
            let fault = |source| ProcessError::Start { name, source };
            let started = self.spawn().and_then(|child| OrphanCleanup::kill_process(self.child.insert(child).id()));
            self.cleanup = Some(started.map_err(fault)?);
        }
        Ok(())
    }

    fn spawn(&self) -> io::Result<Child> {
        let log = File::options().create(true).append(true).open(&self.launch.log)?;
        Command::new(&self.launch.program)
            .args(&self.launch.arguments)
            .envs(self.launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C at a terminal is sent to the whole process group; children are ended by their owner, in its order.
            .process_group(0)
            .spawn()
    }

    /// Sets the arguments of the next start.
    pub fn set_arguments(&mut self, arguments: Vec<OsString>) {
        self.launch.arguments = arguments;
    }

    /// Sets an environment variable of the next start.
    pub fn set_variable(&mut self, name: &'static str, value: String) {
        self.launch.environment.retain(|(known, _)| *known != name);
        self.launch.environment.push((name, value));
    }

    /// Waits until it is ready, and returns its address.
    pub fn wait_until_ready(&mut self, runtime: &InterruptibleRuntime) -> Result<String, ProcessError> {
        self.wait_for_line(runtime, READY)
    }

    /// Waits until it prints a line with this prefix, and returns the rest of the line.
    pub fn wait_for_line(&mut self, runtime: &InterruptibleRuntime, prefix: &str) -> Result<String, ProcessError> {
        let found = runtime.block_on(READY_MAX, async {
            loop {
                if let Some(rest) = self.find_line(prefix) {
                    return Ok(rest);
                }
                self.check()?;
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        });
        found.unwrap_or_else(|source| {
            Err(ProcessError::NotReady { name: self.launch.name.clone(), source, tail: self.tail() })
        })
    }

    fn find_line(&self, prefix: &str) -> Option<String> {
        let bytes = self.log();
        let text = String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default());
        // Only complete lines count.
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.find_map(|line| line.strip_prefix(prefix)).map(str::to_owned)
    }

    /// Checks that it has not ended unexpectedly.
    pub fn check(&mut self) -> Result<(), ProcessError> {
        // A child whose status cannot be read is treated as running: every wait has a timeout.
        let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        match ended {
            None => Ok(()),
            Some(status) => {
                (self.child, self.cleanup) = (None, None);
                Err(ProcessError::Ended { name: self.launch.name.clone(), status, tail: self.tail() })
            }
        }
    }

    /// Sends SIGKILL and waits for its end.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only for a process that has ended already.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
        self.cleanup = None;
    }

    /// Process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends SIGTERM without waiting, so that several processes can end at the same time. A stopped process goes on.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&mut self, signal: Signal) {
        let Some(child) = &mut self.child else { return };
        // Not reaped yet, so that the id is still its own.
        if matches!(child.try_wait(), Ok(None))
            && let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            let _ended = kill_process(id, signal);
        }
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(&self.launch.log).unwrap_or_default()
    }

    /// Returns the last lines of its log, indented, under its name. Keys are hidden.
    pub fn tail(&self) -> String {
        let bytes = self.log();
        let log = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default();
        let mut text = format!("  last lines of {}:\n", self.launch.name);
        for line in last {
            text.push_str(&format!("    {}\n", hide_keys(line)));
        }
        text
    }
}

impl Drop for Process {
    #[expect(clippy::disallowed_methods, reason = "a destructor cannot await, and nothing else runs meanwhile")]
    fn drop(&mut self) {
        self.terminate();
        let Some(child) = &mut self.child else { return };
        let mut waited = Duration::ZERO;
        while matches!(child.try_wait(), Ok(None)) && waited < END_MAX {
            std::thread::sleep(CHECK_INTERVAL);
            waited += CHECK_INTERVAL;
        }
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(directory: &tempfile::TempDir, script: &str) -> Process {
        let launch = Launch {
            name: "shell".into(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: Vec::new(),
            log: directory.path().join("shell.log"),
        };
        Process::start(launch).unwrap()
    }

    fn is_running(id: u32) -> bool {
        PathBuf::from(format!("/proc/{id}")).exists()
    }

    #[test]
    fn the_last_lines_contain_no_key() {
        let (directory, runtime) = (tempfile::tempdir().unwrap(), InterruptibleRuntime::new().unwrap());
        let mut process = shell(&directory, "echo its key: brokkr_BRabc_secret; echo READY here; sleep 10");
        process.wait_until_ready(&runtime).unwrap();
        assert_eq!(process.tail(), "  last lines of shell:\n    its key: brokkr_…\n    READY here\n");
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed_by_its_owner() {
        let (directory, runtime) = (tempfile::tempdir().unwrap(), InterruptibleRuntime::new().unwrap());
        let mut stubborn = shell(&directory, "trap '' TERM; echo READY here; while :; do sleep 0.1; done");
        assert_eq!(stubborn.wait_until_ready(&runtime).unwrap(), "here");
        let id = stubborn.child.as_ref().unwrap().id();
        assert!(is_running(id));
        drop(stubborn);
        assert!(!is_running(id));
    }

    #[test]
    fn a_process_that_ends_instead_of_becoming_ready_is_named_with_its_last_lines() {
        let (directory, runtime) = (tempfile::tempdir().unwrap(), InterruptibleRuntime::new().unwrap());
        let error = shell(&directory, "echo no room >&2; exit 3").wait_until_ready(&runtime).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("shell ended unexpectedly: exit status: 3"), "{message}");
        assert!(message.contains("    no room\n"), "{message}");
    }

    #[test]
    fn a_killed_process_can_be_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell(&directory, "sleep 60");
        let first = process.child.as_ref().unwrap().id();
        process.kill();
        assert!(!is_running(first));
        process.check().unwrap();
        process.restart().unwrap();
        assert_ne!(process.child.as_ref().unwrap().id(), first);
    }
}
