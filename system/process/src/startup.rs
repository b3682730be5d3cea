//! Start of a process: reads its arguments, its environment and its configuration file.

use std::ffi::OsString;

use clap::ArgMatches;

use crate::config::{Config, ConfigError};
use crate::flags::{self, EarlyExit};
use crate::program::Program;

/// Result of reading the arguments and settings.
#[derive(Debug)]
pub enum Startup {
    /// Print this text (help, version or settings) and exit.
    Print(String),
    /// Run the process.
    Run {
        /// Every setting.
        config: Config,
        /// Subcommand and its arguments.
        command: Option<(String, ArgMatches)>,
    },
}

impl Startup {
    /// Reads the arguments (the first is the name of the program), the environment, and the file that the arguments name.
    pub fn read(
        program: &'static Program,
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let flags = match flags::read(program, arguments) {
            Ok(flags) => flags,
            Err(EarlyExit::Print(text)) => return Ok(Self::Print(text)),
            Err(EarlyExit::Invalid(line)) => return Err(ConfigError::Flags(line)),
        };
        let file = flags.config_file.map(read_file).transpose()?;
        let file = file.as_ref().map(|(path, text)| (path.as_str(), text.as_str()));
        let config = Config::read(program, file, read_variables(program, environment)?, flags.settings)?;
        if flags.print_config {
            return Ok(Self::Print(config.print()));
        }
        Ok(Self::Run { config, command: flags.command })
    }
}

fn read_file(path: String) -> Result<(String, String), ConfigError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(ConfigError::File { path, reason: error.to_string() }),
    }
}

/// Returns the variables that have the program's prefix. Others are ignored, even if they are not Unicode.
fn read_variables(
    program: &Program,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut variables = Vec::new();
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with(program.prefix)) else { continue };
        let value = value.into_string().map_err(|_| ConfigError::Variable(name.to_owned()))?;
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}
