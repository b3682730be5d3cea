//! Commands as a user types them: shown before they are run, their output after, and no key in either.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use sindri_cluster::program::{Ending, say};
use sindri_conformance::keys::hide_keys;

/// Where commands are run: with the demonstration's addresses in the environment, as a user would set them.
pub struct Shell {
    /// What `sindri` means here.
    pub cli: PathBuf,
    /// The addresses and files.
    pub environment: Vec<(&'static str, OsString)>,
}

impl Shell {
    /// Shows a command, runs it and shows what it said.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Ending> {
        let words: Vec<String> = std::iter::once(&program).chain(arguments).map(|word| quoted(word)).collect();
        let shown = words.join(" ");
        say(format!("$ {shown}"));
        let text = self.quietly(program, arguments)?;
        for line in text.lines() {
            say(format!("  {}", hide_keys(line)));
        }
        Ok(text)
    }

    /// Runs a command and returns what it said.
    pub fn quietly(&self, program: &str, arguments: &[&str]) -> Result<String, Ending> {
        let failed = |reason: &str| Ending::Broken(format!("{program} {}: {}", arguments.join(" "), hide_keys(reason)));
        let path = if program == "sindri" { self.cli.clone() } else { PathBuf::from(program) };
        let command = Command::new(path)
            .args(arguments)
            // A key of another broker that the user may have set would come before the file.
            .env_remove("SINDRI_KEY")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .output();
        let output = command.map_err(|error| failed(&error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,".contains(character);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_split_is_quoted() {
        assert_eq!(quoted("--type=merge"), "--type=merge");
        assert_eq!(quoted("{\"a\": 1}"), "'{\"a\": 1}'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
