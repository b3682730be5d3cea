//! A child process on a leash: it holds its input open, and ends when that is closed, by us or by the kernel when we
//! are gone.
//!
//! A program that does not look at its input is run by a small guard that does. Its output comes back line by line.

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

/// How often a wait looks whether it is to go on.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a process may take to end before it is killed.
const END_MAX: Duration = Duration::from_secs(20);
/// Lines that wait to be read; a process that says more waits until they are.
const LINES_MAX: usize = 1024;

/// Runs a program in a session of its own until it ends or the input does, then removes a directory, if one is named.
/// The arguments are the directory, or nothing, and the program with its own arguments. A program that has not yet
/// begun its session is killed alone. The guard itself says nothing: with nobody to read it, that would be its end.
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

/// What a process said, or that it will say no more.
#[derive(Debug)]
pub enum Heard {
    /// A line.
    Line(String),
    /// It ended.
    Ended(ExitStatus),
    /// Neither came in time.
    Nothing,
}

/// A child that ends with its owner.
pub struct Leashed {
    child: Child,
    input: Option<ChildStdin>,
    lines: Option<Receiver<String>>,
    reader: Option<JoinHandle<()>>,
    end_max: Duration,
}

impl Leashed {
    /// Starts a program that ends by itself when its input is closed.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let (output, write) = io::pipe()?;
        command.stdin(Stdio::piped()).stdout(write.try_clone()?).stderr(write);
        // Ctrl-C at a terminal goes to a whole group; children are ended by their owner, in its order.
        command.process_group(0);
        let mut child = command.spawn()?;
        // What the command still holds of the pipe would keep it open when the child is gone.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let input = child.stdin.take();
        let (send, lines) = sync_channel(LINES_MAX);
        let mut leashed = Self { child, input, lines: Some(lines), reader: None, end_max: END_MAX };
        let read = move || pass_on(output, &send);
        leashed.reader = Some(std::thread::Builder::new().name("output".to_owned()).spawn(read)?);
        Ok(leashed)
    }

    /// The command that runs any program under a guard. `remove` is removed after it ended.
    pub fn guarded(program: &OsStr, arguments: &[OsString], remove: Option<&Path>) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD, "guard"]).arg(remove.unwrap_or(Path::new(""))).arg(program).args(arguments);
        command
    }

    /// Waits for a line.
    pub fn hear(&mut self, within: Duration, stop: &Stop) -> Result<Heard, ClusterError> {
        let began = Instant::now();
        loop {
            if stop.is_set() {
                return Err(ClusterError::Interrupted);
            }
            match self.lines.as_ref().map(|lines| lines.recv_timeout(LOOK_EVERY)) {
                Some(Ok(line)) => return Ok(Heard::Line(line)),
                Some(Err(RecvTimeoutError::Timeout)) if began.elapsed() < within => {}
                Some(Err(RecvTimeoutError::Timeout)) => return Ok(Heard::Nothing),
                // It closed its output: it ended, or is about to.
                Some(Err(RecvTimeoutError::Disconnected)) | None => return Ok(Heard::Ended(self.reap(END_MAX)?)),
            }
        }
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells it something through its input.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), |input| writeln!(input, "{line}").and_then(|()| input.flush()))
    }

    /// Lets go of it: it goes on without us, if it was told so.
    pub fn release(mut self) {
        self.input = None;
        self.lines = None;
        // The thread ends with the output's end, which may be long after us; nobody waits for it.
        self.reader = None;
        std::mem::forget(self);
    }

    fn reap(&mut self, within: Duration) -> Result<ExitStatus, ClusterError> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if began.elapsed() < within => pause(),
                Ok(None) => return Err(ClusterError::late("a process to end", within)),
                Err(error) => return Err(ClusterError::file(Path::new("a process"), &error)),
            }
        }
    }

    /// Gives it more time to end than others have.
    pub(crate) fn allow_to_end(&mut self, within: Duration) {
        self.end_max = within;
    }

    /// Ends it, and waits until it is gone: its input is closed, which is what it waits for.
    pub fn end(&mut self) {
        self.input = None;
        // A reader that cannot pass a line on must not keep the process waiting.
        self.lines = None;
        if self.reap(self.end_max).is_err() {
            let _ended = self.child.kill();
            let _reaped = self.child.wait();
        }
        // Its output may be open in a process that it left behind; that one is not waited for.
        if let Some(reader) = self.reader.take().filter(JoinHandle::is_finished) {
            let _ended = reader.join();
        }
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        self.end();
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for a process, where no runtime can be")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

/// Passes lines on until nobody writes or nobody listens any more. What is no text is shown as far as it is.
fn pass_on(output: PipeReader, lines: &SyncSender<String>) {
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

    fn shell(script: &str, remove: Option<&Path>) -> Leashed {
        let mut command = Leashed::guarded(OsStr::new("/bin/sh"), &["-c".into(), script.into()], remove);
        Leashed::start(&mut command).unwrap()
    }

    fn line(process: &mut Leashed) -> String {
        match process.hear(Duration::from_secs(10), &Stop::default()).unwrap() {
            Heard::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    fn runs(id: &str) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // One that nobody asked about yet has ended too.
        state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    }

    #[test]
    fn a_guarded_program_and_its_children_end_with_their_owner_even_if_they_do_not_want_to() {
        let directory = tempfile::tempdir().unwrap().keep();
        let mut stubborn = shell("trap '' TERM; sleep 600 & echo $$ $!; wait; sleep 600", Some(&directory));
        let ids = line(&mut stubborn);
        assert!(ids.split(' ').all(runs), "{ids}");
        drop(stubborn);
        // The kernel was told to kill them all; those that are not our children end a moment later.
        let mut looks = 0..500;
        while ids.split(' ').any(runs) {
            assert!(looks.next().is_some(), "{ids}");
            pause();
        }
        assert!(!directory.exists());
    }

    #[test]
    fn how_a_guarded_program_ends_is_told() {
        let mut short = shell("echo so; exit 7", None);
        assert_eq!(line(&mut short), "so");
        match short.hear(Duration::from_secs(10), &Stop::default()).unwrap() {
            Heard::Ended(status) => assert_eq!(status.code(), Some(7)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_ends_when_the_program_is_asked_to() {
        let stop = Stop::default();
        stop.set(2);
        let mut silent = shell("sleep 600", None);
        assert!(matches!(silent.hear(Duration::from_secs(600), &stop), Err(ClusterError::Interrupted)));
        assert_eq!(stop.exit_code(), 130);
    }
}
