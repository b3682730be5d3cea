//! Output and exit codes of the command-line programs around clusters.
//!
//! Exit codes: 0 for success, 1 for a failure or a difference, 2 for an error of the user, 3 for a provider of clusters that
//! cannot run on this machine, 128 plus the number of the signal after a signal. Left out: the flags and the progress output
//! of each program.

use std::io::Write;
use std::process::ExitCode;

use crate::error::ClusterError;
use crate::stop::Stop;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_UNAVAILABLE: u8 = 3;

/// Reason for which a program exits without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// Error of the user: flags, files or names.
    Usage(String),
    /// Failure of the program or of what it uses.
    Failed(String),
    /// Failure or difference that the program has already printed.
    AlreadyReported,
    /// This machine lacks something that is needed.
    Unavailable(String),
    /// A signal ended the program; the exit code is 128 plus its number.
    Interrupted(u8),
}

impl ExitReason {
    /// Returns the reason for an error of a cluster.
    pub fn from_cluster_error(error: &ClusterError, stop: &Stop) -> Self {
        match error {
            ClusterError::Failed(_) => Self::Failed(error.to_string()),
            ClusterError::Usage(_) => Self::Usage(error.to_string()),
            ClusterError::Unavailable { .. } => Self::Unavailable(error.to_string()),
            ClusterError::Interrupted => Self::Interrupted(stop.exit_code()),
        }
    }

    fn into_code_and_message(self) -> (u8, Option<String>) {
        match self {
            Self::Usage(message) => (EXIT_USAGE, Some(message)),
            Self::Failed(message) => (EXIT_FAILED, Some(message)),
            Self::AlreadyReported => (EXIT_FAILED, None),
            Self::Unavailable(message) => (EXIT_UNAVAILABLE, Some(format!("not run: {message}"))),
            Self::Interrupted(code) => (code, Some("interrupted; everything that was started is ended".to_owned())),
        }
    }
}

/// Prints the reason of a failure and returns the exit code for `main`.
pub fn exit_code(program: &str, done: Result<(), ExitReason>) -> ExitCode {
    let Err(reason) = done else { return ExitCode::SUCCESS };
    let (code, message) = reason.into_code_and_message();
    if let Some(message) = message {
        print_error(program, message);
    }
    ExitCode::from(code)
}

/// Prints a line to stdout. Errors are ignored: a reader that has closed the pipe, such as `head`, must not stop the cleanup.
pub fn print_line(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush());
}

/// Prints an error to stderr, with the name of the program.
pub fn print_error(program: &str, text: impl AsRef<str>) {
    let _unread = writeln!(std::io::stderr(), "{program}: {}", text.as_ref());
}

/// Forwards a line of another process, which has its own name in it, to stderr.
pub fn forward_line(line: &str) {
    let _unread = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ProviderName;

    #[test]
    fn every_exit_reason_has_its_code_and_message() {
        let stop = Stop::default();
        stop.set(15);
        let (missing, advice) = ("no docker".to_owned(), "install it".to_owned());
        let unavailable = ClusterError::Unavailable { provider: ProviderName::Kind, missing, advice };
        let convert = |error: &ClusterError| ExitReason::from_cluster_error(error, &stop).into_code_and_message();
        assert_eq!(convert(&ClusterError::Usage("no".to_owned())), (2, Some("no".to_owned())));
        assert_eq!(convert(&unavailable), (3, Some(format!("not run: {unavailable}"))));
        assert_eq!(convert(&ClusterError::Interrupted).0, 128 + 15);
        let failed = ExitReason::Failed("it broke".to_owned()).into_code_and_message();
        assert_eq!(failed, (1, Some("it broke".to_owned())));
        assert_eq!(ExitReason::AlreadyReported.into_code_and_message(), (1, None));
    }
}
