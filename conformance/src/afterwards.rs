//! What is to be done when this program is gone and could not do it itself, because somebody killed it.
//!
//! A small shell waits until its input is closed, by the kernel if nobody else does. Whoever cleans up as usual drops it,
//! and nothing happens.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, and then does what the rest of the script says with the first argument.
const WAIT: &str = "while read -r _; do :; done; ";

/// Something that is left to be done. Dropped, it is not.
#[derive(Debug)]
pub struct Afterwards(Child);

impl Afterwards {
    /// A process is killed.
    pub fn kill(id: u32) -> io::Result<Self> {
        Self::start("kill -s KILL \"$0\"", OsStr::new(&id.to_string()))
    }

    /// A directory is removed. A process that writes to it may take a moment to end.
    pub fn remove(directory: &Path) -> io::Result<Self> {
        Self::start("rm -rf \"$0\" || { sleep 2; rm -rf \"$0\"; }", directory.as_os_str())
    }

    fn start(deed: &str, subject: &OsStr) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("{WAIT}{deed}")]).arg(subject);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C at a terminal goes to a whole group, and is no reason to do it.
        command.process_group(0).spawn().map(Self)
    }
}

impl Drop for Afterwards {
    fn drop(&mut self) {
        // Before its input is closed. Both fail only for a shell that has ended already.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cleaned_up_as_usual_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        drop(Afterwards::remove(directory.path()).unwrap());
        assert!(directory.path().exists());
    }

    #[test]
    fn when_nobody_is_left_the_process_is_killed_and_the_directory_removed() {
        let directory = tempfile::tempdir().unwrap().keep();
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        for mut afterwards in [Afterwards::kill(sleeper.id()).unwrap(), Afterwards::remove(&directory).unwrap()] {
            // As the kernel does it for a program that was killed.
            drop(afterwards.0.stdin.take());
            assert!(afterwards.0.wait().unwrap().success());
        }
        assert!(!sleeper.wait().unwrap().success());
        assert!(!directory.exists());
    }
}
