//! Exit codes.

use std::process::ExitCode;

/// Result of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it was asked for.
    Success = 0,
    /// It failed, and may succeed later.
    Failed = 1,
    /// The arguments, a file or the request are not valid.
    Usage = 2,
    /// Another submission has replaced the one for which the command waits.
    Replaced = 3,
    /// The time for which the command waits is over.
    Timeout = 4,
    /// The files of `sindri diff` would change a cluster.
    Changes = 5,
    /// A person has interrupted the command: 128 and the number of SIGINT, as shells report it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
