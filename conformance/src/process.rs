//! One child process: started with its output in a log file, asked to end when it is dropped, and made to end if
//! it does not.
//!
//! Only this process is ever signalled, by its id and before it is reaped, so that the id cannot be another's.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use crate::afterwards::Afterwards;
use crate::keys::hide_keys;
use crate::waiter::{Cut, Waiter};

/// How long a process may take until it is ready.
const READY_MAX: Duration = Duration::from_secs(30);
/// How long a process may take to end before it is killed.
const END_MAX: Duration = Duration::from_secs(5);
/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What a process says when others may come, with its address.
const READY: &str = "READY ";
/// Lines of a log that are shown with a failure.
const TAIL_LINES: usize = 15;

/// A process that does not run as it should.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// It cannot be started.
    #[error("{name} cannot be started: {source}")]
    Start {
        /// Who.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// It ended and nobody had asked it to.
    #[error("{name} ended by itself: {status}\n{tail}")]
    Ended {
        /// Who.
        name: String,
        /// How.
        status: ExitStatus,
        /// The last lines of its log.
        tail: String,
    },
    /// It did not become ready.
    #[error("{name} did not become ready: {cut}\n{tail}")]
    NotReady {
        /// Who.
        name: String,
        /// Why the wait ended.
        cut: Cut,
        /// The last lines of its log.
        tail: String,
    },
}

/// How a process is started, each time.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What people call it.
    pub name: String,
    /// The binary.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What is added to its environment: keys, which arguments would show to everyone.
    pub environment: Vec<(&'static str, String)>,
    /// Where its output goes.
    pub log: PathBuf,
}

/// A child, running or killed.
pub struct Process {
    launch: Launch,
    child: Option<Child>,
    /// What ends it when this program is killed.
    afterwards: Option<Afterwards>,
    /// How long the log was at the last start: what earlier starts said does not count.
    log_start: usize,
}

impl Process {
    /// Starts it.
    pub fn start(launch: Launch) -> Result<Self, ProcessError> {
        let mut process = Self { launch, child: None, afterwards: None, log_start: 0 };
        process.restart()?;
        Ok(process)
    }

    /// Starts it again if it does not run.
    pub fn restart(&mut self) -> Result<(), ProcessError> {
        if self.child.is_none() {
            self.log_start = self.log().len();
            let name = self.launch.name.clone();
            let fault = |source| ProcessError::Start { name, source };
            let started = self.spawn().and_then(|child| Afterwards::kill(self.child.insert(child).id()));
            self.afterwards = Some(started.map_err(fault)?);
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
            // Ctrl-C at a terminal goes to a whole group; children are ended by their owner, in its order.
            .process_group(0)
            .spawn()
    }

    /// Uses other arguments from the next start on.
    pub fn set_arguments(&mut self, arguments: Vec<OsString>) {
        self.launch.arguments = arguments;
    }

    /// Has another value in a variable of its environment from the next start on.
    pub fn set_variable(&mut self, name: &'static str, value: String) {
        self.launch.environment.retain(|(known, _)| *known != name);
        self.launch.environment.push((name, value));
    }

    /// Waits until it says that it is ready, and returns the address that it says.
    pub fn ready(&mut self, waiter: &Waiter) -> Result<String, ProcessError> {
        self.says(waiter, READY)
    }

    /// Waits until it says a line that begins so, and returns the rest of the line.
    pub fn says(&mut self, waiter: &Waiter, beginning: &str) -> Result<String, ProcessError> {
        let looked = waiter.wait(READY_MAX, async {
            loop {
                if let Some(rest) = self.said(beginning) {
                    return Ok(rest);
                }
                self.check()?;
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        looked.unwrap_or_else(|cut| {
            Err(ProcessError::NotReady { name: self.launch.name.clone(), cut, tail: self.tail() })
        })
    }

    fn said(&self, beginning: &str) -> Option<String> {
        let bytes = self.log();
        let text = String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default());
        // A line counts when it is whole.
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.find_map(|line| line.strip_prefix(beginning)).map(str::to_owned)
    }

    /// Sees that it has not ended by itself.
    pub fn check(&mut self) -> Result<(), ProcessError> {
        // A child that cannot be asked is treated as running: whoever waits for it has a bound.
        let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        match ended {
            None => Ok(()),
            Some(status) => {
                (self.child, self.afterwards) = (None, None);
                Err(ProcessError::Ended { name: self.launch.name.clone(), status, tail: self.tail() })
            }
        }
    }

    /// Kills it with no warning.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only for a process that has ended already.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
        self.afterwards = None;
    }

    /// Its id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Asks it to end, without waiting: several that are asked first end at the same time.
    pub fn ask_to_end(&mut self) {
        let Some(child) = &mut self.child else { return };
        // Not reaped yet, so the id is still its own.
        if matches!(child.try_wait(), Ok(None))
            && let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            let _ended = kill_process(id, Signal::TERM);
        }
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(&self.launch.log).unwrap_or_default()
    }

    /// The last lines of its log, each indented, under its name. A broker tells a new key once, and not here.
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
    #[expect(
        clippy::disallowed_methods,
        reason = "a destructor cannot wait otherwise, and nothing else runs meanwhile"
    )]
    fn drop(&mut self) {
        self.ask_to_end();
        let Some(child) = &mut self.child else { return };
        let mut waited = Duration::ZERO;
        while matches!(child.try_wait(), Ok(None)) && waited < END_MAX {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
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

    fn runs(id: u32) -> bool {
        PathBuf::from(format!("/proc/{id}")).exists()
    }

    #[test]
    fn the_last_lines_show_no_key() {
        let (directory, waiter) = (tempfile::tempdir().unwrap(), Waiter::new().unwrap());
        let mut told = shell(&directory, "echo its key: brokkr_BRabc_secret; echo READY here; sleep 10");
        told.ready(&waiter).unwrap();
        assert_eq!(told.tail(), "  last lines of shell:\n    its key: brokkr_…\n    READY here\n");
    }

    #[test]
    fn a_process_ends_with_its_owner_even_if_it_does_not_want_to() {
        let (directory, waiter) = (tempfile::tempdir().unwrap(), Waiter::new().unwrap());
        let mut stubborn = shell(&directory, "trap '' TERM; echo READY here; while :; do sleep 0.1; done");
        assert_eq!(stubborn.ready(&waiter).unwrap(), "here");
        let id = stubborn.child.as_ref().unwrap().id();
        assert!(runs(id));
        drop(stubborn);
        assert!(!runs(id));
    }

    #[test]
    fn a_process_that_ends_instead_of_becoming_ready_is_named_with_its_last_words() {
        let (directory, waiter) = (tempfile::tempdir().unwrap(), Waiter::new().unwrap());
        let error = shell(&directory, "echo no room >&2; exit 3").ready(&waiter).unwrap_err();
        let words = error.to_string();
        assert!(words.starts_with("shell ended by itself: exit status: 3"), "{words}");
        assert!(words.contains("    no room\n"), "{words}");
    }

    #[test]
    fn a_killed_process_can_be_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell(&directory, "sleep 60");
        let first = process.child.as_ref().unwrap().id();
        process.kill();
        assert!(!runs(first));
        process.check().unwrap();
        process.restart().unwrap();
        assert_ne!(process.child.as_ref().unwrap().id(), first);
    }
}
