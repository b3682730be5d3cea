//! Commands as a user types them: shown before they are run, their output after, and no key in either.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use sindri_cluster::program::{Ending, say};

/// How every access key begins.
const KEY_START: &str = "brokkr_";

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

/// The key in a text, if there is one.
pub fn key_in(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| word.starts_with(KEY_START))
}

fn hide_keys(line: &str) -> String {
    let hidden = |word: &str| if word.starts_with(KEY_START) { format!("{KEY_START}…") } else { word.to_owned() };
    line.split(' ').map(hidden).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_shown() {
        let line = "generator default (7), its key, shown this once: brokkr_BRabc_secret";
        assert_eq!(hide_keys(line), "generator default (7), its key, shown this once: brokkr_…");
        assert_eq!(key_in(line), Some("brokkr_BRabc_secret"));
    }

    #[test]
    fn a_word_that_a_shell_would_split_is_quoted() {
        assert_eq!(quoted("--type=merge"), "--type=merge");
        assert_eq!(quoted("{\"a\": 1}"), "'{\"a\": 1}'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
