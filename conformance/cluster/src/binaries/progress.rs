//! Progress of a long build: one line that is rewritten on a terminal, or a new line every few seconds elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use tokio::time::Instant;

/// Time between two lines of a log.
const LOG_EVERY: Duration = Duration::from_secs(15);
/// Time between two updates on a terminal.
const REWRITE_EVERY: Duration = Duration::from_millis(500);

/// Progress of one task.
pub(super) struct Progress {
    task: String,
    began: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub(super) fn new(task: String) -> Self {
        Self { task, began: Instant::now(), shown: None, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Shows the state, unless it was shown a moment ago.
    pub(super) fn update(&mut self, state: &str) {
        let every = if self.is_terminal { REWRITE_EVERY } else { LOG_EVERY };
        if self.shown.is_none_or(|shown| shown.elapsed() >= every) {
            self.shown = Some(Instant::now());
            let line = format!("{}: {state}, {} s", self.task, self.began.elapsed().as_secs());
            print(&if self.is_terminal { format!("\r\x1b[K{line}") } else { format!("{line}\n") });
        }
    }

    /// Shows the final state.
    pub(super) fn done(&self, state: &str) {
        let line = format!("{}: {state}, {} s\n", self.task, self.began.elapsed().as_secs());
        print(&if self.is_terminal { format!("\r\x1b[K{line}") } else { line });
    }
}

/// Prints to stderr. Errors are ignored: a closed pipe is no reason to stop.
pub(super) fn print(text: &str) {
    let mut out = std::io::stderr().lock();
    let _unread = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
