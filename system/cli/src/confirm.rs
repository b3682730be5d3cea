//! Questions before changes that cannot be undone.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

use clap::Args;
use sindri_model::text::to_printable_lines;

use crate::failure::Failure;
use crate::session::Session;

/// Terminal of the process, also if its standard output and error are redirected.
const TERMINAL: &str = "/dev/tty";
/// Limit on the length of an answer.
const ANSWER_BYTES_MAX: u64 = 1024;

/// Flag that answers the question in advance.
#[derive(Args, Debug)]
pub(crate) struct Confirmation {
    /// Do not ask. If standard input is no terminal there is no question.
    #[arg(short, long)]
    pub yes: bool,
}

impl Confirmation {
    /// Returns true if a person is asked: standard input is a terminal, and the answer was not given in advance.
    pub(crate) fn is_asked(&self) -> bool {
        !self.yes && io::stdin().is_terminal()
    }

    /// Asks a person at the terminal, also if other output is redirected. The question says which broker is changed.
    pub(crate) fn ask(&self, session: &Session, question: &str) -> Result<(), Failure> {
        let is_confirmed = self.ask_about(session, "", question)?;
        if is_confirmed { Ok(()) } else { Err(Failure::Operation("nothing was changed".to_owned())) }
    }

    /// Asks a person at the terminal after showing details there. Returns true if there is no question.
    pub(crate) fn ask_about(&self, session: &Session, details: &str, question: &str) -> Result<bool, Failure> {
        if !self.is_asked() {
            return Ok(true);
        }
        let to_failure =
            |error: io::Error| Failure::Operation(format!("the terminal cannot be asked ({error}); --yes answers"));
        let terminal = File::options().read(true).write(true).open(TERMINAL).map_err(to_failure)?;
        let question = format!("{details}{}: {question}", session.describe_place());
        ask_person(&to_printable_lines(&question), &terminal, &terminal).map_err(to_failure)
    }
}

fn ask_person(question: &str, input: impl Read, mut output: impl Write) -> io::Result<bool> {
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    BufReader::new(input.take(ANSWER_BYTES_MAX)).read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_confirms() {
        for (answer, is_confirmed) in [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false)] {
            let mut output = Vec::new();
            assert_eq!(ask_person("Delete it?", answer.as_bytes(), &mut output).unwrap(), is_confirmed, "{answer:?}");
            assert_eq!(output, b"Delete it? [y/N] ");
        }
    }
}
