//! How the programs around clusters speak, and how they end.
//!
//! Their exit codes are 0 when everything went well, 1 for what failed or differs, 2 for a mistake of the user, 3 for a kind
//! of cluster that cannot run here, 128 and the number of the signal when one ended it. Left out: their flags, and what they say
//! of their progress.

use std::io::Write;
use std::process::ExitCode;

use crate::error::ClusterError;
use crate::stop::Stop;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_NOT_RUN: u8 = 3;

/// Why a program ends without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The user can put it right.
    Mistake(String),
    /// Something did not work as it should.
    Broken(String),
    /// Something failed or differs, and its lines said what.
    Told,
    /// This machine has not what it takes.
    NotRun(String),
    /// A signal ended it; the exit code says which.
    Interrupted(u8),
}

impl Ending {
    /// Because there is no cluster.
    pub fn of(error: &ClusterError, stop: &Stop) -> Self {
        match error {
            ClusterError::Failed(_) => Self::Broken(error.to_string()),
            ClusterError::Mistake(_) => Self::Mistake(error.to_string()),
            ClusterError::Unavailable { .. } => Self::NotRun(error.to_string()),
            ClusterError::Interrupted => Self::Interrupted(stop.exit_code()),
        }
    }

    /// The exit code, and what is said last.
    fn told(self) -> (u8, Option<String>) {
        match self {
            Self::Mistake(message) => (EXIT_USAGE, Some(message)),
            Self::Broken(message) => (EXIT_FAILED, Some(message)),
            Self::Told => (EXIT_FAILED, None),
            Self::NotRun(message) => (EXIT_NOT_RUN, Some(format!("not run: {message}"))),
            Self::Interrupted(code) => (code, Some("interrupted; everything that was started is ended".to_owned())),
        }
    }
}

/// Ends a program: what `main` returns.
pub fn end(program: &str, done: Result<(), Ending>) -> ExitCode {
    let Err(ending) = done else { return ExitCode::SUCCESS };
    let (code, message) = ending.told();
    if let Some(message) = message {
        complain(program, message);
    }
    ExitCode::from(code)
}

/// Prints a line. Whoever stopped reading, as `head` does, does not stop the work, and leaves nothing running.
pub fn say(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush());
}

/// Prints what went wrong.
pub fn complain(program: &str, text: impl AsRef<str>) {
    let _unread = writeln!(std::io::stderr(), "{program}: {}", text.as_ref());
}

/// Passes on what another process said, which has said who it is.
pub fn pass_on(line: &str) {
    let _unread = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ProviderName;

    #[test]
    fn every_ending_has_its_code_and_says_why_once() {
        let stop = Stop::default();
        stop.set(15);
        let (missing, advice) = ("no docker".to_owned(), "install it".to_owned());
        let unavailable = ClusterError::Unavailable { provider: ProviderName::Kind, missing, advice };
        let told = |error: &ClusterError| Ending::of(error, &stop).told();
        assert_eq!(told(&ClusterError::Mistake("no".to_owned())), (2, Some("no".to_owned())));
        assert_eq!(told(&unavailable), (3, Some(format!("not run: {unavailable}"))));
        assert_eq!(told(&ClusterError::Interrupted).0, 128 + 15);
        assert_eq!(Ending::Broken("it broke".to_owned()).told(), (1, Some("it broke".to_owned())));
        assert_eq!(Ending::Told.told(), (1, None));
    }
}
