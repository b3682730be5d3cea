//! The arguments of the process, as the table of settings has them.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::program::Program;
use crate::setting::{Kind, Setting};

const CONFIG: &str = "config";
const PRINT_CONFIG: &str = "print-config";

/// What the arguments say.
#[derive(Debug)]
pub struct Flags {
    /// The file with settings.
    pub config_file: Option<String>,
    /// Whether only the settings are asked for.
    pub print_config: bool,
    /// The command among them, and what follows it.
    pub command: Option<(String, ArgMatches)>,
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
pub fn read(program: &'static Program, arguments: impl IntoIterator<Item = OsString>) -> Result<Flags, Otherwise> {
    let mut matches = command(program).try_get_matches_from(arguments).map_err(|error| {
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
        settings: program.settings.iter().filter_map(|setting| value(setting, &matches)).collect(),
        command: matches.remove_subcommand(),
    })
}

fn value(setting: &'static Setting, matches: &ArgMatches) -> Option<(&'static Setting, String)> {
    Some((setting, matches.get_one::<String>(setting.flag?)?.clone()))
}

fn command(program: &'static Program) -> Command {
    let config = Arg::new(CONFIG).long(CONFIG).value_name("FILE").help("A file with settings, in TOML");
    let print = Arg::new(PRINT_CONFIG).long(PRINT_CONFIG).action(ArgAction::SetTrue);
    let example = program.variable(program.example);
    Command::new(program.name)
        .version(program.version)
        .about(program.about)
        .after_help(format!("A setting can also be a variable, like {example}, or stand in the file."))
        .subcommands((program.commands)())
        .arg(config.global(true))
        .arg(print.global(true).help("Shows every setting, its value and where it came from, and ends"))
        .args(program.settings.iter().filter_map(|setting| argument(setting)))
}

fn argument(setting: &'static Setting) -> Option<Arg> {
    let flag = setting.flag?;
    let mut help = setting.help.to_owned();
    if let Kind::Choice(words) = setting.kind {
        help.push_str(&format!(": {}", words.join(", ")));
    }
    if let Some(default) = setting.default.filter(|default| !default.is_empty()) {
        help.push_str(&format!(" [default: {default}]"));
    }
    let argument = Arg::new(flag).long(flag).help(help).global(true);
    Some(match setting.kind {
        Kind::Text => argument.value_name("TEXT"),
        Kind::Path => argument.value_name("PATH"),
        Kind::Count(..) => argument.value_name("COUNT"),
        // The flag alone means yes.
        Kind::Switch => {
            argument.value_name("true|false").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        Kind::Choice(_) => argument.value_name("WORD"),
        Kind::Form(form) => argument.value_name(form.placeholder),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::example::{LISTEN, PROGRAM, SWITCH};

    fn arguments(arguments: &[&str]) -> Result<Flags, Otherwise> {
        read(&PROGRAM, ["sindri-a"].iter().chain(arguments).map(OsString::from))
    }

    fn said(flags: &Flags) -> Vec<(&str, &str)> {
        flags.settings.iter().map(|(setting, text)| (setting.key, text.as_str())).collect()
    }

    #[test]
    fn only_what_was_said_is_there() {
        let flags = arguments(&["--listen", "a:1", "--switch", "--config", "f"]).unwrap();
        assert_eq!(said(&flags), [(LISTEN.key, "a:1"), (SWITCH.key, "true")]);
        assert_eq!((flags.config_file.as_deref(), flags.print_config), (Some("f"), false));
        assert!(flags.command.is_none());
    }

    #[test]
    fn settings_may_stand_before_a_command_and_after_it() {
        let flags = arguments(&["--listen", "a:1", "look", "deep", "--switch=false", "--print-config"]).unwrap();
        assert_eq!(said(&flags), [(LISTEN.key, "a:1"), (SWITCH.key, "false")]);
        let (name, matches) = flags.command.unwrap();
        assert_eq!((name.as_str(), matches.get_one::<String>("where").unwrap().as_str()), ("look", "deep"));
        assert!(flags.print_config);
    }

    #[test]
    fn a_mistake_is_one_line_and_help_names_every_flag_and_command() {
        let Err(Otherwise::Mistake(line)) = arguments(&["--nonsense"]) else { panic!("a mistake") };
        assert_eq!(line, "unexpected argument '--nonsense' found");
        let Err(Otherwise::Said(help)) = arguments(&["--help"]) else { panic!("help") };
        for flag in PROGRAM.settings.iter().filter_map(|setting| setting.flag) {
            assert!(help.contains(&format!("--{flag}")), "{flag}");
        }
        assert!(help.contains("look") && help.contains("SINDRI__A__LOG__LEVEL"), "{help}");
        let Err(Otherwise::Said(version)) = arguments(&["--version"]) else { panic!("the version") };
        assert_eq!(version, "sindri-a 1.2.3\n");
    }
}
