//! Cleanup that survives SIGKILL of this process.
//!
//! A small shell waits until its stdin is closed, which the kernel does when this process ends. After a normal cleanup the value
//! is dropped, and the shell is killed before it does anything.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits until stdin is closed; the rest of the script uses the first argument.
const WAIT: &str = "while read -r _; do :; done; ";

/// A cleanup that runs if this process ends without dropping it.
#[derive(Debug)]
pub struct OrphanCleanup(Child);

impl OrphanCleanup {
    /// Kills a process.
    pub fn kill_process(id: u32) -> io::Result<Self> {
        Self::start("kill -s KILL \"$0\"", OsStr::new(&id.to_string()))
    }

    /// Removes a directory, twice if needed: a process that writes to it may take a moment to end.
    pub fn remove_directory(directory: &Path) -> io::Result<Self> {
        Self::start("rm -rf \"$0\" || { sleep 2; rm -rf \"$0\"; }", directory.as_os_str())
    }

    fn start(script: &str, argument: &OsStr) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("{WAIT}{script}")]).arg(argument);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C at a terminal is sent to the whole process group, and must not trigger the cleanup.
        command.process_group(0).spawn().map(Self)
    }
}

impl Drop for OrphanCleanup {
    fn drop(&mut self) {
        // Before its stdin is closed. Both fail only for a shell that has ended already.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_cleanup_does_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(OrphanCleanup::remove_directory(directory.path()).unwrap());
        assert!(directory.path().exists());
    }

    #[test]
    fn after_the_end_of_this_process_the_process_is_killed_and_the_directory_removed() {
        let directory = tempfile::tempdir().unwrap().keep();
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        for mut cleanup in
            [OrphanCleanup::kill_process(sleeper.id()).unwrap(), OrphanCleanup::remove_directory(&directory).unwrap()]
        {
            // As the kernel does for a process that was killed.
            drop(cleanup.0.stdin.take());
            assert!(cleanup.0.wait().unwrap().success());
        }
        assert!(!sleeper.wait().unwrap().success());
        assert!(!directory.exists());
    }
}
