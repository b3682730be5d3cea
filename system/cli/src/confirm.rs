//! Questions before changes that cannot be undone.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

use clap::Args;

use crate::failure::Failure;

/// Limit on the length of an answer.
const ANSWER_BYTES_MAX: u64 = 1024;

/// Flag that answers the question in advance.
#[derive(Args, Debug)]
pub(crate) struct Confirmation {
    /// Do not ask. Without a terminal there is no question.
    #[arg(short, long)]
    pub yes: bool,
}

impl Confirmation {
    /// Asks a person at a terminal. Without a terminal, and with `--yes`, the answer is yes.
    pub(crate) fn ask(&self, question: &str) -> Result<(), Failure> {
        let input = io::stdin();
        if self.yes || !input.is_terminal() || !io::stderr().is_terminal() {
            return Ok(());
        }
        let is_confirmed = ask_person(question, input.lock(), io::stderr())
            .map_err(|error| Failure::Operation(format!("the answer cannot be read: {error}")))?;
        if is_confirmed { Ok(()) } else { Err(Failure::Operation("nothing was changed".to_owned())) }
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
