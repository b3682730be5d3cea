//! Command-line arguments, generated from the table of settings.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::program::Program;
use crate::setting::{Setting, SettingType};

const CONFIG: &str = "config";
const PRINT_CONFIG: &str = "print-config";

/// Parsed arguments.
#[derive(Debug)]
pub struct Flags {
    /// Configuration file.
    pub config_file: Option<String>,
    /// True if the settings are to be printed, and nothing else.
    pub print_config: bool,
    /// Subcommand and its arguments.
    pub command: Option<(String, ArgMatches)>,
    /// Settings that have a flag among the arguments.
    pub settings: Vec<(&'static Setting, String)>,
}

/// Reason to exit without running.
#[derive(Debug)]
pub enum EarlyExit {
    /// Help or version, to be printed.
    Print(String),
    /// Invalid arguments, described in one line.
    Invalid(String),
}

/// Parses the arguments; the first is the name of the program.
pub fn read(program: &'static Program, arguments: impl IntoIterator<Item = OsString>) -> Result<Flags, EarlyExit> {
    let mut matches = build_command(program).try_get_matches_from(arguments).map_err(|error| {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => EarlyExit::Print(text),
            _ => {
                let line = text.lines().next().unwrap_or_default();
                EarlyExit::Invalid(line.strip_prefix("error: ").unwrap_or(line).to_owned())
            }
        }
    })?;
    Ok(Flags {
        config_file: matches.get_one(CONFIG).cloned(),
        print_config: matches.get_flag(PRINT_CONFIG),
        settings: program.settings.iter().filter_map(|setting| read_flag(setting, &matches)).collect(),
        command: matches.remove_subcommand(),
    })
}

fn read_flag(setting: &'static Setting, matches: &ArgMatches) -> Option<(&'static Setting, String)> {
    Some((setting, matches.get_one::<String>(setting.flag?)?.clone()))
}

fn build_command(program: &'static Program) -> Command {
    let config = Arg::new(CONFIG).long(CONFIG).value_name("FILE").help("Configuration file in TOML");
    let print = Arg::new(PRINT_CONFIG).long(PRINT_CONFIG).action(ArgAction::SetTrue);
    let example = program.variable(program.example);
    Command::new(program.name)
        .version(program.version)
        .about(program.about)
        .after_help(format!("Each setting can also be set by an environment variable, like {example}, or in the file."))
        .subcommands((program.commands)())
        .arg(config.global(true))
        .arg(print.global(true).help("Print every setting with its value and source, and exit"))
        .args(program.settings.iter().filter_map(|setting| build_argument(setting)))
}

fn build_argument(setting: &'static Setting) -> Option<Arg> {
    let flag = setting.flag?;
    let mut help = setting.help.to_owned();
    if let SettingType::Choice(choices) = setting.value_type {
        help.push_str(&format!(": {}", choices.join(", ")));
    }
    if let Some(default) = setting.default.filter(|default| !default.is_empty()) {
        help.push_str(&format!(" [default: {default}]"));
    }
    let argument = Arg::new(flag).long(flag).help(help).global(true);
    Some(match setting.value_type {
        SettingType::Text => argument.value_name("TEXT"),
        SettingType::Path => argument.value_name("PATH"),
        SettingType::Count(..) => argument.value_name("COUNT"),
        // The flag without a value means true.
        SettingType::Switch => {
            argument.value_name("true|false").num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        SettingType::Choice(_) => argument.value_name("WORD"),
        SettingType::Custom(custom) => argument.value_name(custom.placeholder),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::example::{LISTEN, PROGRAM, SWITCH};

    fn parse(arguments: &[&str]) -> Result<Flags, EarlyExit> {
        read(&PROGRAM, ["sindri-a"].iter().chain(arguments).map(OsString::from))
    }

    fn settings(flags: &Flags) -> Vec<(&str, &str)> {
        flags.settings.iter().map(|(setting, text)| (setting.key, text.as_str())).collect()
    }

    #[test]
    fn only_given_flags_are_returned() {
        let flags = parse(&["--listen", "a:1", "--switch", "--config", "f"]).unwrap();
        assert_eq!(settings(&flags), [(LISTEN.key, "a:1"), (SWITCH.key, "true")]);
        assert_eq!((flags.config_file.as_deref(), flags.print_config), (Some("f"), false));
        assert!(flags.command.is_none());
    }

    #[test]
    fn settings_are_accepted_before_and_after_a_subcommand() {
        let flags = parse(&["--listen", "a:1", "look", "deep", "--switch=false", "--print-config"]).unwrap();
        assert_eq!(settings(&flags), [(LISTEN.key, "a:1"), (SWITCH.key, "false")]);
        let (name, matches) = flags.command.unwrap();
        assert_eq!((name.as_str(), matches.get_one::<String>("where").unwrap().as_str()), ("look", "deep"));
        assert!(flags.print_config);
    }

    #[test]
    fn invalid_arguments_give_one_line_and_help_lists_every_flag_and_subcommand() {
        let Err(EarlyExit::Invalid(line)) = parse(&["--nonsense"]) else { panic!("invalid arguments") };
        assert_eq!(line, "unexpected argument '--nonsense' found");
        let Err(EarlyExit::Print(help)) = parse(&["--help"]) else { panic!("help") };
        for flag in PROGRAM.settings.iter().filter_map(|setting| setting.flag) {
            assert!(help.contains(&format!("--{flag}")), "{flag}");
        }
        assert!(help.contains("look") && help.contains("SINDRI__A__LOG__LEVEL"), "{help}");
        let Err(EarlyExit::Print(version)) = parse(&["--version"]) else { panic!("the version") };
        assert_eq!(version, "sindri-a 1.2.3\n");
    }
}
