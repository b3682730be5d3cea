//! What commands say, on standard output.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Says all of it at once. Whoever has read enough may be gone: `sindri status | grep -q web` is no failure.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    match write(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(failure),
    }
}

/// Says what cannot be said again: it is a failure if nobody can have heard it.
pub(crate) fn say_this_once(text: &str) -> Result<(), Failure> {
    write(text).map_err(failure)
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn failure(error: io::Error) -> Failure {
    Failure::Elsewhere(format!("standard output: {error}"))
}
