//! A line that shows that something long is going on: rewritten on a terminal, elsewhere a new one now and then.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use tokio::time::Instant;

/// How often a line is shown where it cannot be rewritten.
const LOG_EVERY: Duration = Duration::from_secs(15);
/// How often it is rewritten where it can.
const REWRITE_EVERY: Duration = Duration::from_millis(500);

/// Something long.
pub(super) struct Progress {
    what: String,
    began: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub(super) fn new(what: String) -> Self {
        Self { what, began: Instant::now(), shown: None, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Shows how far it is, if it is time to.
    pub(super) fn at(&mut self, state: &str) {
        let every = if self.is_terminal { REWRITE_EVERY } else { LOG_EVERY };
        if self.shown.is_none_or(|shown| shown.elapsed() >= every) {
            self.shown = Some(Instant::now());
            let line = format!("{}: {state}, {} s", self.what, self.began.elapsed().as_secs());
            print(&if self.is_terminal { format!("\r\x1b[K{line}") } else { format!("{line}\n") });
        }
    }

    /// Shows that it is done.
    pub(super) fn done(&self, state: &str) {
        let line = format!("{}: {state}, {} s\n", self.what, self.began.elapsed().as_secs());
        print(&if self.is_terminal { format!("\r\x1b[K{line}") } else { line });
    }
}

/// A reader that went away is no reason to stop.
pub(super) fn print(text: &str) {
    let mut out = std::io::stderr().lock();
    let _unread = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
