//! How a process begins: its arguments, its environment and its file, read in this order and laid over each other.

use std::ffi::OsString;

use clap::ArgMatches;

use crate::config::{Config, ConfigError};
use crate::flags::{self, Otherwise};
use crate::program::Program;

/// What there is to do.
#[derive(Debug)]
pub enum Begun {
    /// Only this text was asked for: help, the version or the settings.
    Said(String),
    /// To run.
    Run {
        /// Every setting.
        config: Config,
        /// The command among the arguments, and what follows it.
        command: Option<(String, ArgMatches)>,
    },
}

/// Reads the arguments, of which the first is the name of the program, the environment, and the file that the arguments
/// name.
pub fn begin(
    program: &'static Program,
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Begun, ConfigError> {
    let flags = match flags::read(program, arguments) {
        Ok(flags) => flags,
        Err(Otherwise::Said(text)) => return Ok(Begun::Said(text)),
        Err(Otherwise::Mistake(line)) => return Err(ConfigError::Flags(line)),
    };
    let file = flags.config_file.map(read_file).transpose()?;
    let file = file.as_ref().map(|(path, text)| (path.as_str(), text.as_str()));
    let config = Config::read(program, file, texts(program, environment)?, flags.settings)?;
    if flags.print_config {
        return Ok(Begun::Said(config.print()));
    }
    Ok(Begun::Run { config, command: flags.command })
}

fn read_file(path: String) -> Result<(String, String), ConfigError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(ConfigError::File { path, reason: error.to_string() }),
    }
}

/// Only what concerns the program: whatever else is in the environment may be anything.
fn texts(
    program: &Program,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut texts = Vec::new();
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with(program.prefix)) else { continue };
        let value = value.into_string().map_err(|_| ConfigError::Variable(name.to_owned()))?;
        texts.push((name.to_owned(), value));
    }
    Ok(texts)
}
