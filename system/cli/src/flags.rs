//! Flags of every command, and which of their values come from variables.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Format;

const CONTEXT: &str = "SINDRI_CONTEXT";
const BROKER: &str = "SINDRI_BROKER";
const BROKER_CA_FILE: &str = "SINDRI_BROKER_CA_FILE";
const KEY: &str = "SINDRI_KEY";
const KEY_FILE: &str = "SINDRI_KEY_FILE";
const TOKEN_FILE: &str = "SINDRI_TOKEN_FILE";

/// Flags that select a broker and a key, by their ids, and the variable of each.
const SELECTING: [(&str, &str); 6] = [
    ("context", CONTEXT),
    ("broker", BROKER),
    ("broker_ca_file", BROKER_CA_FILE),
    ("key", KEY),
    ("key_file", KEY_FILE),
    ("token_file", TOKEN_FILE),
];
/// Variables with a credential.
const CREDENTIALS: [&str; 3] = [KEY, KEY_FILE, TOKEN_FILE];

/// Flags of every command. They take precedence over their variables, and both over the current context.
#[derive(Args, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Flags {
    /// Context to use, instead of the current one and of the variables for a broker and a key (see `sindri context`).
    #[arg(long, global = true, env = CONTEXT, value_name = "NAME")]
    pub context: Option<String>,
    /// URL of the broker; by default that of the context, or http://127.0.0.1:3000.
    #[arg(long, global = true, env = BROKER, value_name = "URL")]
    pub broker: Option<String>,
    /// Certificate authorities in PEM for the broker's certificate, instead of those that this machine trusts.
    #[arg(long, global = true, env = BROKER_CA_FILE, value_name = "FILE", value_parser = path())]
    pub broker_ca_file: Option<PathBuf>,
    /// Access key. Other users of the machine can see it on the command line: use the variable or a file.
    #[arg(long, global = true, env = KEY, hide_env_values = true, value_name = "KEY")]
    pub key: Option<String>,
    /// File with the access key.
    #[arg(long, global = true, env = KEY_FILE, value_name = "FILE", value_parser = path())]
    pub key_file: Option<PathBuf>,
    /// File with the token of `sindri login`, which is used if there is no access key.
    #[arg(long, global = true, env = TOKEN_FILE, value_name = "FILE", value_parser = path())]
    pub token_file: Option<PathBuf>,
    /// Format of the output.
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
    /// URL of a collector to which the trace of this command is exported by OTLP over HTTP.
    #[arg(long, global = true, env = "SINDRI_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Variables whose values are in the fields that select a broker and a key.
    #[arg(skip)]
    pub variables: BTreeSet<&'static str>,
    /// True if a credential in a variable is not used, because it is for the broker of `SINDRI_BROKER` and another one was typed.
    #[arg(skip)]
    pub is_credential_withheld: bool,
}

impl Flags {
    /// Records which values come from variables, and drops those that typed flags replace.
    pub(crate) fn resolve(mut self, matches: &ArgMatches, environment: &Environment) -> Result<Self, Failure> {
        let is_variable = |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        self.variables = SELECTING.iter().filter(|(id, _)| is_variable(id)).map(|(_, name)| *name).collect();
        let exported = environment.get(BROKER).map(|broker| broker.to_string_lossy().into_owned());
        self.drop_replaced(exported.as_deref())?;
        Ok(self)
    }

    /// A typed context replaces every variable. A typed broker replaces the credential for the broker of the variable.
    fn drop_replaced(&mut self, exported_broker: Option<&str>) -> Result<(), Failure> {
        if self.context.as_deref() == Some("") {
            if !self.variables.contains(CONTEXT) {
                return Err(Failure::Usage("--context is empty: name a context".to_owned()));
            }
            self.drop_variable(CONTEXT);
        }
        self.drop_empty()?;
        if self.context.is_some() && !self.variables.contains(CONTEXT) {
            for (_, name) in SELECTING {
                self.drop_variable(name);
            }
        }
        let is_other = |(broker, exported): (&String, &str)| !is_same_broker(broker, exported);
        if self.broker.as_ref().zip(exported_broker).is_some_and(is_other) {
            self.drop_variable(BROKER_CA_FILE);
            self.is_credential_withheld = CREDENTIALS.into_iter().filter(|name| self.drop_variable(name)).count() > 0;
        }
        if self.key.is_some() && self.key_file.is_some() {
            match (self.variables.contains(KEY), self.variables.contains(KEY_FILE)) {
                (true, false) => {
                    self.drop_variable(KEY);
                }
                (false, true) => {
                    self.drop_variable(KEY_FILE);
                }
                (true, true) | (false, false) => {
                    let message = "there is a key and a file with a key: set either --key or SINDRI_KEY, or --key-file \
                                   or SINDRI_KEY_FILE";
                    return Err(Failure::Usage(message.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Drops variables without a value: a variable of CI that is not set is empty.
    fn drop_empty(&mut self) -> Result<(), Failure> {
        let is_empty = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        let empty = [
            (BROKER, "--broker", self.broker.as_deref() == Some("")),
            (BROKER_CA_FILE, "--broker-ca-file", is_empty(&self.broker_ca_file)),
            (KEY_FILE, "--key-file", is_empty(&self.key_file)),
            (TOKEN_FILE, "--token-file", is_empty(&self.token_file)),
        ];
        for (variable, flag, _) in empty.into_iter().filter(|(.., is_empty)| *is_empty) {
            if !self.drop_variable(variable) {
                return Err(Failure::Usage(format!("{flag} is empty")));
            }
        }
        Ok(())
    }

    /// Drops the value of a variable; returns false if it is not used.
    fn drop_variable(&mut self, name: &str) -> bool {
        if !self.variables.remove(name) {
            return false;
        }
        match name {
            CONTEXT => self.context = None,
            BROKER => self.broker = None,
            BROKER_CA_FILE => self.broker_ca_file = None,
            KEY => self.key = None,
            KEY_FILE => self.key_file = None,
            _ => self.token_file = None,
        }
        true
    }

    /// Returns the variable that has the credential; `None` if it was typed, or if there is none.
    pub(crate) fn credential_variable(&self) -> Option<&'static str> {
        CREDENTIALS.into_iter().find(|name| self.variables.contains(name))
    }

    /// Returns the variable that has the access key or its file; `None` if it was typed, or if there is none.
    pub(crate) fn key_variable(&self) -> Option<&'static str> {
        [KEY, KEY_FILE].into_iter().find(|name| self.variables.contains(name))
    }

    /// Returns a note that variables replace the current context, if there are any.
    pub(crate) fn describe_override(&self) -> Option<String> {
        let is_context_ignored = self.variables.contains(CONTEXT) && self.variables.contains(BROKER);
        let is_named = |name: &&str| *name != BROKER_CA_FILE && !(is_context_ignored && *name == CONTEXT);
        let names: Vec<&str> = self.variables.iter().copied().filter(is_named).collect();
        let (last, others) = names.split_last()?;
        let (names, are) = match others {
            [] => ((*last).to_owned(), "is"),
            others => (format!("{} and {last}", others.join(", ")), "are"),
        };
        let replaced = if is_context_ignored { CONTEXT } else { "the current context" };
        Some(format!("{names} {are} set and used instead of {replaced}; --context NAME is used instead of them"))
    }
}

/// Parses a path that may be empty: an empty variable is dropped later.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Returns true if two URLs are those of one broker.
pub(crate) fn is_same_broker(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the flags of a command that names these values and has all others in variables.
    fn resolve(typed: &[&'static str]) -> Result<Flags, Failure> {
        let text = |value: &str| Some(value.to_owned());
        let variables = [CONTEXT, BROKER, KEY].into_iter().filter(|name| !typed.contains(name)).collect();
        let (context, broker, key) = (text("staging"), text("https://broker"), text("key"));
        let mut flags = Flags { context, broker, key, variables, ..Flags::default() };
        flags.drop_replaced(Some("https://exported"))?;
        Ok(flags)
    }

    #[test]
    fn a_typed_context_drops_every_variable_and_keeps_what_is_typed() {
        let flags = resolve(&[CONTEXT]).unwrap();
        assert_eq!((flags.context.as_deref(), flags.broker, flags.key), (Some("staging"), None, None));
        let flags = resolve(&[CONTEXT, KEY]).unwrap();
        assert_eq!((flags.broker, flags.key.as_deref()), (None, Some("key")));
        assert!(flags.variables.is_empty() && !flags.is_credential_withheld);
    }

    #[test]
    fn a_key_in_a_variable_is_not_for_another_typed_broker() {
        let flags = resolve(&[BROKER]).unwrap();
        assert_eq!((flags.key.as_deref(), flags.is_credential_withheld), (None, true));
        let flags = resolve(&[BROKER, KEY]).unwrap();
        assert_eq!((flags.key.as_deref(), flags.is_credential_withheld), (Some("key"), false));
        let mut same =
            Flags { broker: Some("https://exported/".to_owned()), key: Some("key".to_owned()), ..Flags::default() };
        same.variables = BTreeSet::from([KEY]);
        same.drop_replaced(Some("https://exported")).unwrap();
        assert_eq!(same.key.as_deref(), Some("key"));
    }

    #[test]
    fn a_typed_key_file_replaces_a_key_in_a_variable_and_two_of_one_source_are_an_error() {
        let both = |variables: &[&'static str]| {
            let variables = variables.iter().copied().collect();
            let (key, key_file) = (Some("key".to_owned()), Some("/key".into()));
            let mut flags = Flags { key, key_file, variables, ..Flags::default() };
            flags.drop_replaced(None).map(|()| (flags.key.is_some(), flags.key_file.is_some()))
        };
        assert_eq!(both(&[KEY]).unwrap(), (false, true));
        assert_eq!(both(&[KEY_FILE]).unwrap(), (true, false));
        assert!(both(&[]).is_err() && both(&[KEY, KEY_FILE]).is_err());
    }

    #[test]
    fn an_empty_context_is_an_error_unless_it_is_a_variable() {
        let mut flags = Flags { context: Some(String::new()), ..Flags::default() };
        assert!(flags.drop_replaced(None).is_err());
        flags.variables = BTreeSet::from([CONTEXT]);
        flags.drop_replaced(None).unwrap();
        assert_eq!((flags.context.as_ref(), flags.describe_override()), (None, None));
    }
}
