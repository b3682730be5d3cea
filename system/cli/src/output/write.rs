//! Writes to standard output.

use std::io::{self, ErrorKind, Write};

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

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn to_failure(error: io::Error) -> Failure {
    Failure::Operation(format!("cannot write to standard output: {error}"))
}
