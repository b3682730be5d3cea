//! The arguments of the process, as the table of settings has them.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::settings::{Kind, SETTINGS, Setting};

const CONFIG: &str = "config";
const PRINT_CONFIG: &str = "print-config";
const RESTORE_EPOCH: &str = "restore-epoch";

/// What the arguments say.
#[derive(Debug)]
pub struct Flags {
    /// The file with settings.
    pub config_file: Option<String>,
    /// Whether only the settings are asked for.
    pub print_config: bool,
    /// Whether the database was restored from a backup, which is only to be noted.
    pub restore_epoch: bool,
    /// The settings among them.
    pub settings: Vec<(&'static Setting, String)>,
}

/// Why there are no flags to go on with.
#[derive(Debug)]
pub enum Otherwise {
    /// Help or version was asked for; this is it.
    Said(String),
    /// A mistake, in one line.
    Mistake(String),
}

/// Reads the arguments; the first is the name of the program.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Flags, Otherwise> {
    let matches = command().try_get_matches_from(arguments).map_err(|error| {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Otherwise::Said(text),
            _ => {
                let line = text.lines().next().unwrap_or_default();
                Otherwise::Mistake(line.strip_prefix("error: ").unwrap_or(line).to_owned())
            }
        }
    })?;
    Ok(Flags {
        config_file: matches.get_one(CONFIG).cloned(),
        print_config: matches.get_flag(PRINT_CONFIG),
        restore_epoch: matches.subcommand_name() == Some(RESTORE_EPOCH),
        settings: SETTINGS.iter().filter_map(|setting| value(setting, &matches)).collect(),
    })
}

fn value(setting: &'static Setting, matches: &ArgMatches) -> Option<(&'static Setting, String)> {
    Some((setting, matches.get_one::<String>(setting.flag?)?.clone()))
}

fn command() -> Command {
    let config = Arg::new(CONFIG).long(CONFIG).value_name("FILE").help("A file with settings, in TOML");
    let print = Arg::new(PRINT_CONFIG).long(PRINT_CONFIG).action(ArgAction::SetTrue);
    Command::new("sindri-broker")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Keeps what every cluster should run, and tells their agents.")
        .after_help("A setting can also be a variable, like SINDRI__BROKER__DATABASE__URL, or stand in the file.")
        .subcommand(Command::new(RESTORE_EPOCH).about("Notes that the database was restored from a backup, and ends"))
        .arg(config.global(true))
        .arg(print.help("Shows every setting, its value and where it came from, and ends"))
        .args(SETTINGS.iter().filter_map(|setting| argument(setting)))
}

fn argument(setting: &'static Setting) -> Option<Arg> {
    let flag = setting.flag?;
    let mut help = setting.help.to_owned();
    if let Kind::Choice(words) = setting.kind {
        help.push_str(&format!(": {}", words.join(", ")));
    }
    if let Some(default) = setting.default {
        help.push_str(&format!(" [default: {default}]"));
    }
    let argument = Arg::new(flag).long(flag).help(help).global(true);
    Some(match setting.kind {
        Kind::Text => argument.value_name("TEXT"),
        Kind::Path => argument.value_name("PATH"),
        Kind::DatabaseUrl => argument.value_name("URL"),
        Kind::Count(..) => argument.value_name("COUNT"),
        // The flag alone means yes.
        Kind::Switch => {
            argument.value_name("true|false").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        Kind::Choice(_) => argument.value_name("WORD"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::settings::{LISTEN, WEBHOOKS_ALLOW_PRIVATE_TARGETS};
    use super::*;

    fn arguments(arguments: &[&str]) -> Result<Flags, Otherwise> {
        read(["sindri-broker"].iter().chain(arguments).map(OsString::from))
    }

    #[test]
    fn only_what_was_said_is_there() {
        let flags = arguments(&["--listen", "a:1", "--webhooks-allow-private-targets", "--config", "f"]).unwrap();
        let said: Vec<_> = flags.settings.iter().map(|(setting, text)| (setting.key, text.as_str())).collect();
        assert_eq!(said, [(LISTEN.key, "a:1"), (WEBHOOKS_ALLOW_PRIVATE_TARGETS.key, "true")]);
        assert_eq!((flags.config_file.as_deref(), flags.print_config), (Some("f"), false));
    }

    #[test]
    fn a_mistake_is_one_line_and_help_names_every_flag() {
        let Err(Otherwise::Mistake(line)) = arguments(&["--nonsense"]) else { panic!("a mistake") };
        assert_eq!(line, "unexpected argument '--nonsense' found");
        let Err(Otherwise::Said(help)) = arguments(&["--help"]) else { panic!("help") };
        for flag in SETTINGS.iter().filter_map(|setting| setting.flag) {
            assert!(help.contains(&format!("--{flag}")), "{flag}");
        }
    }
}
