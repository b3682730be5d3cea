//! What commands say, on standard output.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Says all of it at once. Whoever has read enough may be gone: `sindri status | grep -q web` is no failure.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Elsewhere(format!("standard output: {error}"))),
    }
}
