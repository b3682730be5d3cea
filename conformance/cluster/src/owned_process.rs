//! A child process that ends with its owner: its stdin is a pipe that only the owner holds open, and it ends when the pipe is
//! closed, by the owner or by the kernel when the owner was killed.
//!
//! A program that does not read its stdin is run by a small shell script, the guard, that does. Output is returned line by line.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::ClusterError;
use crate::stop::Stop;

/// Time between two checks of a wait for the end or for an interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Time for a process to end before it is killed.
const END_MAX: Duration = Duration::from_secs(20);
/// Lines in the queue; a process that prints more blocks until they are read.
const LINES_MAX: usize = 1024;

/// Runs a program in a session of its own until it ends or stdin is closed, then removes a directory, if one is given.
/// Arguments: the directory or an empty text, and the program with its arguments. A program that has not yet started its
/// session is killed alone. The guard itself prints nothing: without a reader, SIGPIPE would kill it.
const GUARD: &str = r#"
directory=$1; shift
end() { kill -s KILL -- "-$program" || kill -s KILL "$program"; }
exec 3<&0
setsid "$@" </dev/null 3<&- & program=$!
exec >/dev/null 2>&1
{ while read -r _; do :; done; end; } <&3 & watcher=$!
trap end TERM INT HUP
wait "$program"; code=$?
end; wait "$program"
kill -s KILL "$watcher"
[ -z "$directory" ] || rm -rf "$directory"
exit "$code"
"#;

/// Next event of a process.
#[derive(Debug)]
pub enum ProcessEvent {
    /// A line of output.
    Line(String),
    /// The process ended.
    Ended(ExitStatus),
    /// Neither within the given time.
    Timeout,
}

/// A child process that ends with its owner.
pub struct OwnedProcess {
    child: Child,
    input: Option<ChildStdin>,
    lines: Option<Receiver<String>>,
    reader: Option<JoinHandle<()>>,
    end_timeout: Duration,
}

impl OwnedProcess {
    /// Starts a program that ends when its stdin is closed.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let (output, write) = io::pipe()?;
        command.stdin(Stdio::piped()).stdout(write.try_clone()?).stderr(write);
        // Ctrl-C at a terminal is sent to the whole process group; children are ended by their owner, in its order.
        command.process_group(0);
        let mut child = command.spawn()?;
        // The command's own copies of the pipe would keep it open after the end of the child.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let input = child.stdin.take();
        let (send, lines) = sync_channel(LINES_MAX);
        let mut process = Self { child, input, lines: Some(lines), reader: None, end_timeout: END_MAX };
        let read = move || forward_lines(output, &send);
        process.reader = Some(std::thread::Builder::new().name("output".to_owned()).spawn(read)?);
        Ok(process)
    }

    /// Returns the command that runs any program under a guard. The directory `remove` is removed after its end.
    pub fn guarded_command(program: &OsStr, arguments: &[OsString], remove: Option<&Path>) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD, "guard"]).arg(remove.unwrap_or(Path::new(""))).arg(program).args(arguments);
        command
    }

    /// Waits for a line or the end of the process.
    pub fn next_event(&mut self, within: Duration, stop: &Stop) -> Result<ProcessEvent, ClusterError> {
        let began = Instant::now();
        loop {
            if stop.is_set() {
                return Err(ClusterError::Interrupted);
            }
            match self.lines.as_ref().map(|lines| lines.recv_timeout(CHECK_INTERVAL)) {
                Some(Ok(line)) => return Ok(ProcessEvent::Line(line)),
                Some(Err(RecvTimeoutError::Timeout)) if began.elapsed() < within => {}
                Some(Err(RecvTimeoutError::Timeout)) => return Ok(ProcessEvent::Timeout),
                // Its output is closed: it has ended, or will in a moment.
                Some(Err(RecvTimeoutError::Disconnected)) | None => {
                    return Ok(ProcessEvent::Ended(self.reap(END_MAX)?));
                }
            }
        }
    }

    /// Returns true if it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its stdin.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), |input| writeln!(input, "{line}").and_then(|()| input.flush()))
    }

    /// Detaches from it: a process that does not end with its stdin keeps running.
    pub fn detach(mut self) {
        self.input = None;
        self.lines = None;
        // The reader thread ends with the output, possibly long after this; it is not joined.
        self.reader = None;
        std::mem::forget(self);
    }

    fn reap(&mut self, within: Duration) -> Result<ExitStatus, ClusterError> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if began.elapsed() < within => pause(),
                Ok(None) => return Err(ClusterError::timed_out("a process to end", within)),
                Err(error) => return Err(ClusterError::from_io(Path::new("a process"), &error)),
            }
        }
    }

    /// Sets the time for it to end before it is killed.
    pub(crate) fn set_end_timeout(&mut self, within: Duration) {
        self.end_timeout = within;
    }

    /// Ends it by closing its stdin, and waits for its end.
    pub fn stop(&mut self) {
        self.input = None;
        // A full queue must not block the process.
        self.lines = None;
        if self.reap(self.end_timeout).is_err() {
            let _ended = self.child.kill();
            let _reaped = self.child.wait();
        }
        // A process that it left behind may hold its output open; that one is not awaited.
        if let Some(reader) = self.reader.take().filter(JoinHandle::is_finished) {
            let _ended = reader.join();
        }
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for a process, without a runtime")]
fn pause() {
    std::thread::sleep(CHECK_INTERVAL);
}

/// Forwards lines until the output or the queue is closed. Invalid UTF-8 is replaced.
fn forward_lines(output: PipeReader, lines: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if lines.send(text).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, remove: Option<&Path>) -> OwnedProcess {
        let mut command = OwnedProcess::guarded_command(OsStr::new("/bin/sh"), &["-c".into(), script.into()], remove);
        OwnedProcess::start(&mut command).unwrap()
    }

    fn line(process: &mut OwnedProcess) -> String {
        match process.next_event(Duration::from_secs(10), &Stop::default()).unwrap() {
            ProcessEvent::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    fn is_running(id: &str) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // A zombie has ended too.
        state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    }

    #[test]
    fn a_guarded_program_that_ignores_sigterm_ends_with_its_children_and_its_owner() {
        let directory = tempfile::tempdir().unwrap().keep();
        let mut stubborn = shell("trap '' TERM; sleep 600 & echo $$ $!; wait; sleep 600", Some(&directory));
        let ids = line(&mut stubborn);
        assert!(ids.split(' ').all(is_running), "{ids}");
        drop(stubborn);
        // All were sent SIGKILL; those that are not our children end a moment later.
        let mut looks = 0..500;
        while ids.split(' ').any(is_running) {
            assert!(looks.next().is_some(), "{ids}");
            pause();
        }
        assert!(!directory.exists());
    }

    #[test]
    fn the_exit_status_of_a_guarded_program_is_returned() {
        let mut short = shell("echo so; exit 7", None);
        assert_eq!(line(&mut short), "so");
        match short.next_event(Duration::from_secs(10), &Stop::default()).unwrap() {
            ProcessEvent::Ended(status) => assert_eq!(status.code(), Some(7)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_ends_when_the_program_is_interrupted() {
        let stop = Stop::default();
        stop.set(2);
        let mut silent = shell("sleep 600", None);
        assert!(matches!(silent.next_event(Duration::from_secs(600), &stop), Err(ClusterError::Interrupted)));
        assert_eq!(stop.exit_code(), 130);
    }
}
