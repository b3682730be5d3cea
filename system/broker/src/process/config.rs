//! The settings of this process and where each came from: flags over environment over file over defaults.
//!
//! Pure: arguments, environment and the text of the file are handed in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use thiserror::Error;
use toml::de::{DeTable, DeValue};

use super::settings::{
    PREFIX, SETTINGS, Setting, TLS_CERTIFICATE_FILE, TLS_KEY_FILE, WEBHOOKS_ENCRYPTION_KEY,
    WEBHOOKS_ENCRYPTION_KEY_FILE,
};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// A line of the file.
    File {
        /// As it was named.
        path: String,
        /// From 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// A flag, without its dashes.
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

/// A setting is wrong. Each form reads as one line.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A key that no setting has.
    #[error("{source_name}: there is no setting {key}; the nearest is {nearest}")]
    UnknownKey {
        /// The file and the line, or `environment`.
        source_name: String,
        /// As it was written.
        key: String,
        /// The name of a setting, in the same form.
        nearest: String,
    },
    /// A value that the setting cannot have.
    #[error("{key} = {value:?} ({origin}): {expected}")]
    BadValue {
        /// Of the setting.
        key: &'static str,
        /// Masked where it is secret.
        value: String,
        /// Where it came from.
        origin: Source,
        /// What it must be.
        expected: String,
    },
    /// The file is no TOML.
    #[error("{path}:{line}: {reason}")]
    BadFile {
        /// As it was named.
        path: String,
        /// From 1.
        line: usize,
        /// What the parser said.
        reason: String,
    },
    /// Two settings that need each other.
    #[error("{0} is set and {1} is not: both or neither")]
    Incomplete(&'static str, &'static str),
    /// Two settings that exclude each other.
    #[error("{0} and {1} are both set: one of them at most")]
    Contradiction(&'static str, &'static str),
}

#[derive(Debug)]
struct Value {
    text: String,
    source: Source,
}

/// The settings of this process, all of them checked.
#[derive(Debug)]
pub struct Config(BTreeMap<&'static str, Value>);

impl Config {
    /// Reads every layer, the weakest first.
    pub fn read(
        file: Option<(&str, &str)>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (&'static Setting, String)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self(BTreeMap::new());
        for setting in SETTINGS {
            setting.default.map_or(Ok(()), |text| config.set(setting, text.to_owned(), Source::Default))?;
        }
        file.map_or(Ok(()), |(path, text)| config.read_file(path, text))?;
        config.read_environment(environment)?;
        for (setting, text) in flags {
            config.set(setting, text, Source::Flag(setting.flag.unwrap_or_default()))?;
        }
        config.check_pairs()?;
        Ok(config)
    }

    /// The value of a setting, if it has one.
    pub fn get(&self, setting: &Setting) -> Option<&str> {
        self.0.get(setting.key).map(|value| value.text.as_str())
    }

    /// The value of a setting that has a default.
    pub fn text(&self, setting: &Setting) -> &str {
        self.get(setting).expect("settings with a default are always set")
    }

    /// The value of a setting that is a path.
    pub fn path(&self, setting: &Setting) -> Option<&Path> {
        self.get(setting).map(Path::new)
    }

    /// The value of a setting that is a number and has a default.
    pub fn count(&self, setting: &Setting) -> usize {
        self.text(setting).parse().expect("values are checked when they are read")
    }

    /// One line per setting: key, value, where it came from.
    pub fn print(&self) -> String {
        let line = |setting: &&Setting| {
            let (value, source) = match self.0.get(setting.key) {
                Some(value) => (setting.shown(&value.text), value.source.to_string()),
                None => ("-".to_owned(), Source::Default.to_string()),
            };
            format!("{:<30}  {value:<24}  {source}\n", setting.key)
        };
        SETTINGS.iter().map(line).collect()
    }

    fn set(&mut self, setting: &Setting, text: String, source: Source) -> Result<(), ConfigError> {
        if let Err(expected) = setting.check(&text) {
            let value = setting.shown(&text);
            return Err(ConfigError::BadValue { key: setting.key, value, origin: source, expected });
        }
        self.0.insert(setting.key, Value { text, source });
        Ok(())
    }

    fn read_environment(&mut self, environment: impl IntoIterator<Item = (String, String)>) -> Result<(), ConfigError> {
        for (name, text) in environment {
            if !name.starts_with(PREFIX) {
                continue;
            }
            let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
                let nearest = nearest(&name, SETTINGS.iter().map(|setting| setting.variable()));
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
        let mut found = Vec::new();
        flatten("", table.get_ref(), &mut found);
        for (key, text, offset) in found {
            let source = Source::File { path: path.to_owned(), line: line_of(offset) };
            let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
                let nearest = nearest(&key, SETTINGS.iter().map(|setting| setting.key.to_owned()));
                return Err(ConfigError::UnknownKey { source_name: source.to_string(), key, nearest });
            };
            self.set(setting, text, source)?;
        }
        Ok(())
    }

    fn check_pairs(&self) -> Result<(), ConfigError> {
        let has = |setting: &Setting| self.0.contains_key(setting.key);
        for (one, other) in [(&TLS_CERTIFICATE_FILE, &TLS_KEY_FILE), (&TLS_KEY_FILE, &TLS_CERTIFICATE_FILE)] {
            if has(one) && !has(other) {
                return Err(ConfigError::Incomplete(one.key, other.key));
            }
        }
        if has(&WEBHOOKS_ENCRYPTION_KEY) && has(&WEBHOOKS_ENCRYPTION_KEY_FILE) {
            return Err(ConfigError::Contradiction(WEBHOOKS_ENCRYPTION_KEY.key, WEBHOOKS_ENCRYPTION_KEY_FILE.key));
        }
        Ok(())
    }
}

/// Every value of the file with its full key and where it stands.
fn flatten(section: &str, table: &DeTable<'_>, found: &mut Vec<(String, String, usize)>) {
    for (name, value) in table {
        let key = if section.is_empty() { name.get_ref().to_string() } else { format!("{section}.{}", name.get_ref()) };
        let offset = name.span().start;
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&key, inner, found),
            DeValue::String(text) => found.push((key, text.to_string(), offset)),
            DeValue::Integer(number) => found.push((key, number.as_str().to_owned(), offset)),
            DeValue::Float(number) => found.push((key, number.as_str().to_owned(), offset)),
            DeValue::Boolean(switch) => found.push((key, switch.to_string(), offset)),
            // No setting takes one; its check says what it does take.
            DeValue::Datetime(time) => found.push((key, time.to_string(), offset)),
            DeValue::Array(_) => found.push((key, "[…]".to_owned(), offset)),
        }
    }
}

fn nearest(wrong: &str, known: impl Iterator<Item = String>) -> String {
    known.min_by_key(|name| distance(wrong, name)).expect("there are settings")
}

/// How many characters must be added, taken away or replaced.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, left) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (column, right) in other.chars().enumerate() {
            let replaced = corner + usize::from(left != right);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::settings::{DATABASE_URL, LISTEN, LOG_LEVEL, WORKERS};
    use super::*;

    fn read(
        file: Option<&str>,
        environment: &[(&str, &str)],
        flags: &[(&'static Setting, &str)],
    ) -> Result<Config, ConfigError> {
        let environment = environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let flags = flags.iter().map(|(setting, text)| (*setting, (*text).to_owned()));
        Config::read(file.map(|text| ("b.toml", text)), environment, flags)
    }

    fn mistake(file: Option<&str>, environment: &[(&str, &str)]) -> String {
        let text = read(file, environment, &[]).unwrap_err().to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    #[test]
    fn flags_win_over_environment_over_file_over_defaults() {
        let (file, variable, flag) = (Some("workers = 2"), [("SINDRI__BROKER__WORKERS", "3")], [(&WORKERS, "4")]);
        for (layers, expected, source) in [
            ((None, &[][..], &[][..]), 1, "default"),
            ((file, &[], &[]), 2, "file b.toml:1"),
            ((None, &variable, &[]), 3, "environment SINDRI__BROKER__WORKERS"),
            ((None, &[], &flag), 4, "flag --workers"),
            ((file, &variable, &[]), 3, "environment SINDRI__BROKER__WORKERS"),
            ((file, &[], &flag), 4, "flag --workers"),
            ((None, &variable, &flag), 4, "flag --workers"),
            ((file, &variable, &flag), 4, "flag --workers"),
        ] {
            let config = read(layers.0, layers.1, layers.2).unwrap();
            assert_eq!((config.count(&WORKERS), config.0["workers"].source.to_string().as_str()), (expected, source));
        }
    }

    #[test]
    fn each_layer_says_only_what_it_says() {
        let file = "listen = \"a:1\"\n\n[log]\nlevel = \"debug\"\nform = \"json\"\n";
        let config = read(Some(file), &[("SINDRI__BROKER__LOG__FORM", "off"), ("PATH", "x")], &[(&LISTEN, "b:2")]);
        let config = config.unwrap();
        assert_eq!(config.text(&LISTEN), "b:2");
        assert_eq!(config.0[LOG_LEVEL.key].source, Source::File { path: "b.toml".to_owned(), line: 4 });
        assert_eq!(config.text(&super::super::settings::LOG_FORM), "off");
        assert_eq!(config.text(&DATABASE_URL), "sqlite:sindri.db");
        assert_eq!(config.path(&TLS_KEY_FILE), None);
    }

    #[test]
    fn what_nobody_knows_is_refused_with_the_nearest_name() {
        assert_eq!(
            mistake(Some("[database]\nconections = 2"), &[]),
            "file b.toml:2: there is no setting database.conections; the nearest is database.connections"
        );
        assert_eq!(
            mistake(None, &[("SINDRI__BROKER__DATABSE__URL", "x")]),
            "environment: there is no setting SINDRI__BROKER__DATABSE__URL; \
             the nearest is SINDRI__BROKER__DATABASE__URL"
        );
    }

    #[test]
    fn a_bad_value_is_named_with_its_source_and_what_is_expected() {
        assert_eq!(
            mistake(Some("\nworkers = 0"), &[]),
            "workers = \"0\" (file b.toml:2): must be a number from 1 to 256"
        );
        assert_eq!(
            mistake(None, &[("SINDRI__BROKER__LOG__LEVEL", "loud")]),
            "log.level = \"loud\" (environment SINDRI__BROKER__LOG__LEVEL): \
             must be one of error, warn, info, debug, trace"
        );
        assert_eq!(
            mistake(Some("webhooks = {allow_private_targets = 1}"), &[]),
            "webhooks.allow_private_targets = \"1\" (file b.toml:1): must be true or false"
        );
        assert!(mistake(Some("workers = [1]"), &[]).contains("must be a number"));
        assert!(mistake(Some("a = \n"), &[]).starts_with("b.toml:1: "));
        assert!(!mistake(None, &[("SINDRI__BROKER__DATABASE__URL", "mysql://me:secret@h/d")]).contains("secret"));
        assert!(!mistake(None, &[("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY", "")]).contains("\"\""));
    }

    #[test]
    fn settings_that_need_or_exclude_each_other_are_checked() {
        assert!(mistake(Some("tls.key_file = \"k\""), &[]).contains("tls.key_file is set and tls.certificate_file is"));
        let both =
            [("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY", "a"), ("SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY_FILE", "b")];
        assert!(mistake(None, &both).contains("one of them at most"));
    }
}
