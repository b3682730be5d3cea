//! Writes to standard output, and notes on standard error.

use std::io::{self, ErrorKind, Write};

use sindri_model::text::to_printable_lines;

use crate::failure::Failure;

/// Prints a text. A closed pipe is not an error, so that `sindri status | grep -q web` succeeds.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match write(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(to_failure),
    }
}

/// Prints a text that cannot be printed again, such as a new key. A closed pipe is an error.
pub(crate) fn print_or_fail(text: &str) -> Result<(), Failure> {
    write(text).map_err(to_failure)
}

/// Writes a note for people to standard error. That it cannot be shown is no error: the pipe may be closed.
pub(crate) fn note(text: &str) {
    let mut output = io::stderr().lock();
    let _closed = writeln!(output, "{}", to_printable_lines(text)).and_then(|()| output.flush());
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn to_failure(error: io::Error) -> Failure {
    Failure::Operation(format!("cannot write to standard output: {error}"))
}
