//! Values of the settings and their sources. Flags override the environment, which overrides the file, which overrides
//! defaults.
//!
//! Pure: arguments, environment and the text of the file are parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::distance::levenshtein_distance;
use crate::program::{Program, Rule};
use crate::setting::Setting;

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The setting's default.
    Default,
    /// A line of the file.
    File {
        /// Path as given on the command line.
        path: String,
        /// Counted from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A flag, without the dashes.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { path, line } => write!(f, "file {path}:{line}"),
            Source::Environment(name) => write!(f, "environment {name}"),
            Source::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// Invalid configuration. Each message is one line.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A key that belongs to no setting.
    #[error("{source_name}: there is no setting {key}; the nearest is {nearest}")]
    UnknownKey {
        /// File and line, or `environment`.
        source_name: String,
        /// Unknown key.
        key: String,
        /// Most similar valid name.
        nearest: String,
    },
    /// An invalid value.
    #[error("{key} = {value:?} ({origin}): {expected}")]
    BadValue {
        /// Key of the setting.
        key: &'static str,
        /// Value, masked if it is secret.
        value: String,
        /// Source of the value.
        origin: Source,
        /// Description of valid values.
        expected: String,
    },
    /// The file is not TOML.
    #[error("{path}:{line}: {reason}")]
    BadFile {
        /// Path as given on the command line.
        path: String,
        /// Counted from 1.
        line: usize,
        /// Message of the parser.
        reason: String,
    },
    /// One of two settings that must be set together is not set.
    #[error("{0} is set and {1} is not: set both or neither")]
    Incomplete(&'static str, &'static str),
    /// Two settings that exclude each other are set.
    #[error("{0} and {1} are both set: set at most one of them")]
    Contradiction(&'static str, &'static str),
    /// A required setting is not set.
    #[error("{key} is not set: {ways}")]
    Missing {
        /// Key of the setting.
        key: &'static str,
        /// Ways to set it.
        ways: String,
    },
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {reason}")]
    File {
        /// Path as given on the command line.
        path: String,
        /// I/O error.
        reason: String,
    },
    /// An environment variable whose value is not Unicode.
    #[error("the environment variable {0:?} is not valid Unicode")]
    Variable(String),
    /// Invalid arguments.
    #[error("{0}")]
    Flags(String),
}

struct Value {
    text: String,
    source: Source,
}

/// Validated settings of this process.
pub struct Config {
    program: &'static Program,
    values: BTreeMap<&'static str, Value>,
}

/// Equal to the output of `print`, so that secrets do not appear in debug output.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}

impl Config {
    /// Reads every layer; later ones override earlier ones.
    pub fn read(
        program: &'static Program,
        file: Option<(&str, &str)>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (&'static Setting, String)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self { program, values: BTreeMap::new() };
        for setting in program.settings {
            setting.default.map_or(Ok(()), |text| config.set(setting, text.to_owned(), Source::Default))?;
        }
        file.map_or(Ok(()), |(path, text)| config.read_file(path, text))?;
        config.read_environment(environment)?;
        for (setting, text) in flags {
            config.set(setting, text, Source::Flag(setting.flag.unwrap_or_default()))?;
        }
        config.check_rules()?;
        Ok(config)
    }

    /// Returns the value of a setting, if it is set.
    pub fn get(&self, setting: &Setting) -> Option<&str> {
        self.values.get(setting.key).map(|value| value.text.as_str())
    }

    /// Returns the value of a setting that has a default.
    pub fn text(&self, setting: &Setting) -> &str {
        self.get(setting).expect("settings with a default are always set")
    }

    /// Returns the value of a required setting.
    pub fn require(&self, setting: &'static Setting) -> Result<&str, ConfigError> {
        self.get(setting).ok_or_else(|| {
            let flag = setting.flag.map_or_else(String::new, |flag| format!("--{flag}, "));
            let ways = format!("set it with {flag}{} or in the file", self.program.variable(setting));
            ConfigError::Missing { key: setting.key, ways }
        })
    }

    /// Returns the value of a switch that has a default.
    pub fn is_on(&self, setting: &Setting) -> bool {
        self.text(setting) == "true"
    }

    /// Returns the value of a setting that is a path.
    pub fn path(&self, setting: &Setting) -> Option<&Path> {
        self.get(setting).map(Path::new)
    }

    /// Returns the value of a count that has a default.
    pub fn count(&self, setting: &Setting) -> usize {
        self.text(setting).parse().expect("values are checked when they are read")
    }

    /// Returns one line per setting: key, value, source.
    pub fn print(&self) -> String {
        let format_line = |setting: &&Setting| {
            let (value, source) = match self.values.get(setting.key) {
                Some(value) if value.text.is_empty() => ("\"\"".to_owned(), value.source.to_string()),
                Some(value) => (setting.redact(&value.text), value.source.to_string()),
                None => ("-".to_owned(), Source::Default.to_string()),
            };
            format!("{:<30}  {value:<24}  {source}\n", setting.key)
        };
        self.program.settings.iter().map(format_line).collect()
    }

    fn set(&mut self, setting: &Setting, text: String, source: Source) -> Result<(), ConfigError> {
        if let Err(expected) = setting.check(&text) {
            let value = setting.redact(&text);
            return Err(ConfigError::BadValue { key: setting.key, value, origin: source, expected });
        }
        self.values.insert(setting.key, Value { text, source });
        Ok(())
    }

    fn read_environment(&mut self, environment: impl IntoIterator<Item = (String, String)>) -> Result<(), ConfigError> {
        for (name, text) in environment {
            if !name.starts_with(self.program.prefix) {
                continue;
            }
            let program = self.program;
            let Some(setting) = program.settings.iter().find(|setting| program.variable(setting) == name) else {
                let nearest = find_nearest(&name, program.settings.iter().map(|setting| program.variable(setting)));
                return Err(ConfigError::UnknownKey { source_name: "environment".to_owned(), key: name, nearest });
            };
            self.set(setting, text, Source::Environment(name))?;
        }
        Ok(())
    }

    fn read_file(&mut self, path: &str, text: &str) -> Result<(), ConfigError> {
        let line_of = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
        let table = DeTable::parse(text).map_err(|error| ConfigError::BadFile {
            path: path.to_owned(),
            line: line_of(error.span().map_or(0, |span| span.start)),
            reason: error.message().lines().collect::<Vec<_>>().join(" "),
        })?;
        let mut values = Vec::new();
        flatten("", table.get_ref(), &mut values);
        for (key, text, offset) in values {
            let source = Source::File { path: path.to_owned(), line: line_of(offset) };
            let settings = self.program.settings;
            let Some(setting) = settings.iter().find(|setting| setting.key == key) else {
                let nearest = find_nearest(&key, settings.iter().map(|setting| setting.key.to_owned()));
                return Err(ConfigError::UnknownKey { source_name: source.to_string(), key, nearest });
            };
            self.set(setting, text, source)?;
        }
        Ok(())
    }

    fn check_rules(&self) -> Result<(), ConfigError> {
        let is_set = |setting: &Setting| self.values.contains_key(setting.key);
        for rule in self.program.rules {
            match rule {
                Rule::Together(one, other) if is_set(one) && !is_set(other) => {
                    return Err(ConfigError::Incomplete(one.key, other.key));
                }
                Rule::Together(one, other) if is_set(other) && !is_set(one) => {
                    return Err(ConfigError::Incomplete(other.key, one.key));
                }
                Rule::OneAtMost(one, other) if is_set(one) && is_set(other) => {
                    return Err(ConfigError::Contradiction(one.key, other.key));
                }
                Rule::Together(..) | Rule::OneAtMost(..) => {}
            }
        }
        Ok(())
    }
}

/// Collects every value of the file with its full key and its offset.
fn flatten(section: &str, table: &DeTable<'_>, values: &mut Vec<(String, String, usize)>) {
    for (name, value) in table {
        let key = if section.is_empty() { name.get_ref().to_string() } else { format!("{section}.{}", name.get_ref()) };
        let offset = name.span().start;
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&key, inner, values),
            DeValue::String(text) => values.push((key, text.to_string(), offset)),
            DeValue::Integer(number) => values.push((key, number.as_str().to_owned(), offset)),
            DeValue::Float(number) => values.push((key, number.as_str().to_owned(), offset)),
            DeValue::Boolean(switch) => values.push((key, switch.to_string(), offset)),
            // No setting takes these types; its check reports the error.
            DeValue::Datetime(time) => values.push((key, time.to_string(), offset)),
            DeValue::Array(_) => values.push((key, "[…]".to_owned(), offset)),
        }
    }
}

/// Returns the name that is most similar to an unknown one.
fn find_nearest(unknown: &str, names: impl Iterator<Item = String>) -> String {
    names.min_by_key(|name| levenshtein_distance(unknown, name)).expect("there are settings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::example::{KEY, KEY_FILE, LEVEL, LISTEN, PROGRAM, WORKERS};

    fn read(
        file: Option<&str>,
        environment: &[(&str, &str)],
        flags: &[(&'static Setting, &str)],
    ) -> Result<Config, ConfigError> {
        let environment = environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let flags = flags.iter().map(|(setting, text)| (*setting, (*text).to_owned()));
        Config::read(&PROGRAM, file.map(|text| ("b.toml", text)), environment, flags)
    }

    fn read_error(file: Option<&str>, environment: &[(&str, &str)]) -> String {
        let text = read(file, environment, &[]).unwrap_err().to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_file_which_overrides_defaults() {
        let (file, variable, flag) = (Some("a.workers = 2"), [("SINDRI__A__WORKERS", "3")], [(&WORKERS, "4")]);
        for (layers, expected, source) in [
            ((None, &[][..], &[][..]), 1, "default"),
            ((file, &[], &[]), 2, "file b.toml:1"),
            ((None, &variable, &[]), 3, "environment SINDRI__A__WORKERS"),
            ((None, &[], &flag), 4, "flag --workers"),
            ((file, &variable, &[]), 3, "environment SINDRI__A__WORKERS"),
            ((file, &[], &flag), 4, "flag --workers"),
            ((None, &variable, &flag), 4, "flag --workers"),
            ((file, &variable, &flag), 4, "flag --workers"),
        ] {
            let config = read(layers.0, layers.1, layers.2).unwrap();
            let found = config.values[WORKERS.key].source.to_string();
            assert_eq!((config.count(&WORKERS), found.as_str()), (expected, source));
        }
    }

    #[test]
    fn a_layer_overrides_only_the_settings_that_it_contains() {
        let file = "[a]\nlisten = \"a:1\"\n\n[a.log]\nlevel = \"debug\"\n";
        let config = read(Some(file), &[("SINDRI__A__SWITCH", "true"), ("PATH", "x")], &[(&LISTEN, "b:2")]).unwrap();
        assert_eq!(config.text(&LISTEN), "b:2");
        assert_eq!(config.values[LEVEL.key].source, Source::File { path: "b.toml".to_owned(), line: 5 });
        assert!(config.is_on(&crate::program::example::SWITCH));
        assert_eq!((config.count(&WORKERS), config.path(&KEY_FILE)), (1, None));
    }

    #[test]
    fn an_unknown_key_is_rejected_with_the_nearest_name() {
        assert_eq!(
            read_error(Some("[a]\nlisen = 2"), &[]),
            "file b.toml:2: there is no setting a.lisen; the nearest is a.listen"
        );
        assert_eq!(
            read_error(None, &[("SINDRI__A__LOG__LEVLE", "x")]),
            "environment: there is no setting SINDRI__A__LOG__LEVLE; the nearest is SINDRI__A__LOG__LEVEL"
        );
        assert!(read_error(Some("workers = 2"), &[]).contains("there is no setting workers"), "outside its section");
    }

    #[test]
    fn a_bad_value_is_named_with_its_source_and_what_is_expected() {
        assert_eq!(
            read_error(Some("\na.workers = 0"), &[]),
            "a.workers = \"0\" (file b.toml:2): must be a number from 1 to 256"
        );
        assert_eq!(
            read_error(None, &[("SINDRI__A__LOG__LEVEL", "loud")]),
            "a.log.level = \"loud\" (environment SINDRI__A__LOG__LEVEL): \
             must be one of error, warn, info, debug, trace"
        );
        assert_eq!(
            read_error(Some("a = {switch = 1}"), &[]),
            "a.switch = \"1\" (file b.toml:1): must be true or false"
        );
        assert_eq!(
            read_error(None, &[("SINDRI__A__LISTEN", "nowhere")]),
            "a.listen = \"NOWHERE\" (environment SINDRI__A__LISTEN): must be like HOST:PORT"
        );
        assert!(read_error(Some("a.workers = [1]"), &[]).contains("must be a number"));
        assert!(read_error(Some("a = \n"), &[]).starts_with("b.toml:1: "));
    }

    #[test]
    fn a_secret_appears_in_no_output() {
        let config = read(None, &[("SINDRI__A__KEY", "hidden")], &[]).unwrap();
        assert_eq!(config.get(&KEY), Some("hidden"));
        assert!(!config.print().contains("hidden") && !format!("{config:?}").contains("hidden"));
        assert!(config.print().contains("***"));
        assert!(!read_error(None, &[("SINDRI__A__KEY", "")]).contains("\"\""));
    }

    #[test]
    fn constraints_between_settings_are_checked() {
        assert!(read_error(Some("a.key_file = \"k\"\na.key = \"k\""), &[]).contains("set at most one of them"));
        for (one, other) in [("certificate", "chain"), ("chain", "certificate")] {
            let message = read_error(Some(&format!("a.{one} = \"k\"")), &[]);
            assert_eq!(message, format!("a.{one} is set and a.{other} is not: set both or neither"));
        }
    }

    #[test]
    fn a_missing_required_setting_is_named_with_every_way_to_set_it() {
        let config = read(None, &[], &[]).unwrap();
        let missing = |setting| config.require(setting).unwrap_err().to_string();
        assert_eq!(
            missing(&KEY_FILE),
            "a.key_file is not set: set it with --key-file, SINDRI__A__KEY_FILE or in the file"
        );
        assert_eq!(missing(&KEY), "a.key is not set: set it with SINDRI__A__KEY or in the file");
    }
}
