//! Lines for whoever reads along. A reader that went away is no reason to leave something running.

use std::io::Write;

/// Prints a line.
pub fn say(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush());
}

/// Prints what went wrong.
pub fn complain(text: impl AsRef<str>) {
    let _unread = writeln!(std::io::stderr(), "sindri-cluster: {}", text.as_ref());
}

/// Passes on what another process said, which has said who it is.
pub fn pass_on(line: &str) {
    let _unread = writeln!(std::io::stderr(), "{line}");
}
