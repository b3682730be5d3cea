//! Commands as a user types them: printed before they run, with their output after, and with keys hidden.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use sindri_cluster::program::{ExitReason, print_line};
use sindri_conformance::keys::hide_keys;

/// Environment of the commands: the addresses of the demonstration in variables, as a user would set them.
pub struct Shell {
    /// Path of `sindri`.
    pub cli: PathBuf,
    /// Variables with addresses and files.
    pub environment: Vec<(&'static str, OsString)>,
}

impl Shell {
    /// Prints a command, runs it and prints its output.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ExitReason> {
        let words: Vec<String> = std::iter::once(&program).chain(arguments).map(|word| quote(word)).collect();
        let shown = words.join(" ");
        print_line(format!("$ {shown}"));
        let text = self.run_quietly(program, arguments)?;
        for line in text.lines() {
            print_line(format!("  {}", hide_keys(line)));
        }
        Ok(text)
    }

    /// Runs a command and returns its output.
    pub fn run_quietly(&self, program: &str, arguments: &[&str]) -> Result<String, ExitReason> {
        let failed =
            |reason: &str| ExitReason::Failed(format!("{program} {}: {}", arguments.join(" "), hide_keys(reason)));
        let path = if program == "sindri" { self.cli.clone() } else { PathBuf::from(program) };
        let command = Command::new(path)
            .args(arguments)
            // A key of another broker that the user may have set has precedence over the file.
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

fn quote(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,".contains(character);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_split_is_quote() {
        assert_eq!(quote("--type=merge"), "--type=merge");
        assert_eq!(quote("{\"a\": 1}"), "'{\"a\": 1}'");
        assert_eq!(quote("it's"), "'it'\\''s'");
    }
}
