//! A secret from standard input: typed at a terminal without being shown, or the first line of a pipe.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use sindri_process::Signals;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::output::note;

/// Limit on the length of a secret.
const BYTES_MAX: u64 = 16 * 1024;

/// Reads a secret; `None` if the line is empty. A terminal shows what is typed again after SIGINT and SIGTERM too.
pub(crate) async fn read_secret(prompt: &str) -> Result<Option<String>, Failure> {
    let to_failure = |error: io::Error| Failure::Operation(format!("standard input cannot be read: {error}"));
    let input = io::stdin();
    if !input.is_terminal() {
        return read_line(input.lock()).map_err(to_failure);
    }
    let signals = Signals::listen().map_err(to_failure)?;
    let hidden = HiddenInput::start().map_err(to_failure)?;
    let mut shown = io::stderr();
    write!(shown, "{prompt}").and_then(|()| shown.flush()).map_err(to_failure)?;
    let typed = read_on_thread();
    let secret = tokio::select! {
        biased; // An interruption counts more than a line that was typed at the same time.
        () = signals.end() => Err(Failure::Interrupted),
        line = typed => line.unwrap_or(Ok(None)).map_err(to_failure),
    };
    drop(hidden);
    note("");
    secret
}

/// Reads a line on a thread, which an interruption leaves behind: a read from a terminal cannot be cancelled.
fn read_on_thread() -> oneshot::Receiver<io::Result<Option<String>>> {
    let (sender, receiver) = oneshot::channel();
    #[expect(clippy::disallowed_methods, reason = "the process owns its threads")]
    drop(std::thread::spawn(move || sender.send(read_line(io::stdin().lock()))));
    receiver
}

fn read_line(input: impl Read) -> io::Result<Option<String>> {
    let mut line = String::new();
    BufReader::new(input.take(BYTES_MAX)).read_line(&mut line)?;
    Ok(Some(line.trim().to_owned()).filter(|secret| !secret.is_empty()))
}

/// A terminal that does not show what is typed, until this is dropped.
struct HiddenInput(Termios);

impl HiddenInput {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // A terminal that is gone needs no reset.
        tcsetattr(io::stdin(), OptionalActions::Flush, &self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::read_line;

    #[test]
    fn the_first_line_is_the_secret() {
        for (input, secret) in [("key\nother\n", Some("key")), (" key ", Some("key")), ("\nkey\n", None), ("", None)] {
            assert_eq!(read_line(input.as_bytes()).unwrap().as_deref(), secret, "{input:?}");
        }
    }
}
