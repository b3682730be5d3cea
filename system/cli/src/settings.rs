//! The broker and the credential of one command: from flags, a typed context, variables, the current context and defaults, in
//! this order.

use std::path::PathBuf;

use crate::contexts::{Context, ContextFile, ContextStore, Secret};
use crate::failure::Failure;
use crate::flags::{Flags, is_same_broker};

/// Broker of a command without flags and contexts.
pub(crate) const BROKER_DEFAULT: &str = "http://127.0.0.1:3000";

/// Proof of identity for the broker.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Key(Secret),
    KeyFile(PathBuf),
    /// Token of a login.
    Login,
    /// There is none, for this reason.
    Missing(String),
}

/// Broker and credential.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Name of the context whose broker it is.
    pub context: Option<String>,
    pub broker: String,
    pub broker_ca_file: Option<PathBuf>,
    pub credential: Credential,
    /// File with the token of a login.
    pub token_file: Option<PathBuf>,
}

impl Settings {
    /// Selects the settings. Without a store there is neither a context nor a default file of tokens.
    pub(crate) fn select(flags: &Flags, store: Option<&ContextStore>) -> Result<Self, Failure> {
        let is_complete = flags.context.is_none() && flags.broker.is_some() && find_key(flags).is_some();
        let file = match store.map_or_else(|| Ok(ContextFile::default()), ContextStore::read) {
            // A directory that cannot be read does not matter to a command that needs no context.
            Err(_) if is_complete => ContextFile::default(),
            read => read?,
        };
        let selected = file.select(flags.context.as_deref())?;
        let default = || selected.map_or(BROKER_DEFAULT, |(_, context)| context.broker.as_str()).to_owned();
        let broker = flags.broker.clone().unwrap_or_else(default);
        // A key is sent to the broker for which it was stored, and to no other.
        let own = selected.filter(|(_, context)| is_same_broker(&context.broker, &broker));
        let lone_variable = flags.credential_variable().filter(|_| flags.broker.is_none());
        let credential = match (find_key(flags), own, selected) {
            (Some(credential), _, selected) => match lone_variable.zip(selected) {
                // The broker of a context with the key for another one.
                Some((variable, (name, context))) => Credential::Missing(format!(
                    "{variable} is set without SINDRI_BROKER, and context {name} is for {}: set SINDRI_BROKER too, or use \
                     --context {name} with its own key",
                    context.broker
                )),
                None => credential,
            },
            (None, Some((_, context)), _) => find_key_of_context(context),
            (None, None, _) if flags.is_credential_withheld => Credential::Missing(format!(
                "the key in the variables is for the broker of SINDRI_BROKER, and not for {broker}: set --key-file"
            )),
            (None, None, Some((name, context))) => Credential::Missing(format!(
                "the key of context {name} is for {}, and not for {broker}: set --key-file or SINDRI_KEY, or use \
                 another context",
                context.broker
            )),
            (None, None, None) => Credential::Login,
        };
        let name = own.map(|(name, _)| name);
        let of_context = own.and_then(|(_, context)| context.broker_ca_file.clone());
        let broker_ca_file = flags.broker_ca_file.clone().or(of_context);
        let token_file = flags.token_file.clone().or_else(|| store.map(|store| store.token_path(name)));
        Ok(Self { context: name.map(str::to_owned), broker, broker_ca_file, credential, token_file })
    }
}

/// Returns the key of the flags and their variables. A file of tokens among them is used instead of a context's key.
fn find_key(flags: &Flags) -> Option<Credential> {
    let key = flags.key.clone().map(|key| Credential::Key(Secret(key)));
    let key = key.or_else(|| flags.key_file.clone().map(Credential::KeyFile));
    key.or_else(|| flags.token_file.is_some().then_some(Credential::Login))
}

fn find_key_of_context(context: &Context) -> Credential {
    let key = context.key.clone().map(Credential::Key);
    key.or_else(|| context.key_file.clone().map(Credential::KeyFile)).unwrap_or(Credential::Login)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "https://a.example";

    struct Case {
        directory: tempfile::TempDir,
        flags: Flags,
    }

    impl Case {
        /// A case with the contexts `a`, which is current and has a key, and `b`, without one.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let text = format!(
                "current = \"a\"\n[contexts.a]\nbroker = \"{A}\"\nkey = \"key of a\"\nbroker_ca_file = \"/ca\"\n\
                 [contexts.b]\nbroker = \"https://b.example\"\n"
            );
            std::fs::write(directory.path().join("config.toml"), text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(directory.path().join("config.toml"), mode).unwrap();
            Self { directory, flags: Flags::default() }
        }

        fn select(&self) -> Result<Settings, Failure> {
            Settings::select(&self.flags, Some(&ContextStore::new(self.directory.path().to_owned())))
        }
    }

    #[test]
    fn the_context_has_broker_and_key() {
        let mut case = Case::new();
        let settings = case.select().unwrap();
        assert_eq!((settings.broker.as_str(), settings.context.as_deref()), (A, Some("a")));
        assert_eq!(settings.broker_ca_file, Some("/ca".into()));
        assert!(matches!(settings.credential, Credential::Key(key) if key.0 == "key of a"));
        case.flags.context = Some("b".to_owned());
        let settings = case.select().unwrap();
        assert_eq!((settings.broker.as_str(), settings.context.as_deref()), ("https://b.example", Some("b")));
        assert!(matches!(settings.credential, Credential::Login));
        assert_eq!(settings.token_file, Some(case.directory.path().join("tokens/b.json")));
        case.flags.context = Some("bb".to_owned());
        let error = case.select().unwrap_err().to_string();
        assert_eq!(error, "there is no context bb: did you mean b?; sindri context list shows all");
    }

    #[test]
    fn flags_take_precedence_over_the_context() {
        let mut case = Case::new();
        case.flags.key_file = Some("/key".into());
        assert!(matches!(case.select().unwrap().credential, Credential::KeyFile(_)));
        case.flags.broker = Some("https://c.example".to_owned());
        let settings = case.select().unwrap();
        assert_eq!(
            (settings.broker.as_str(), settings.context, settings.broker_ca_file),
            ("https://c.example", None, None)
        );
    }

    #[test]
    fn the_key_of_a_context_is_not_sent_to_another_broker() {
        let mut case = Case::new();
        case.flags.broker = Some(format!("{A}/"));
        assert!(matches!(case.select().unwrap().credential, Credential::Key(_)));
        case.flags.broker = Some("https://c.example".to_owned());
        let Credential::Missing(reason) = case.select().unwrap().credential else { panic!("the key would be sent") };
        assert!(reason.starts_with("the key of context a is for https://a.example, and not for https://c.example"));
        case.flags.token_file = Some("/token".into());
        let settings = case.select().unwrap();
        assert!(matches!(settings.credential, Credential::Login));
        assert_eq!(settings.token_file, Some("/token".into()));
    }

    #[test]
    fn a_key_in_a_variable_is_not_sent_to_the_broker_of_a_context() {
        let mut case = Case::new();
        case.flags.key = Some("exported".to_owned());
        case.flags.variables.insert("SINDRI_KEY");
        let Credential::Missing(reason) = case.select().unwrap().credential else { panic!("the key would be sent") };
        assert_eq!(
            reason,
            "SINDRI_KEY is set without SINDRI_BROKER, and context a is for https://a.example: set SINDRI_BROKER too, or \
             use --context a with its own key"
        );
        case.flags.broker = Some("https://c.example".to_owned());
        case.flags.variables.insert("SINDRI_BROKER");
        let settings = case.select().unwrap();
        assert!(matches!(settings.credential, Credential::Key(key) if key.0 == "exported"));
        assert_eq!((settings.broker.as_str(), settings.context), ("https://c.example", None));
    }

    #[test]
    fn a_withheld_key_is_named_unless_a_context_has_another() {
        let mut case = Case::new();
        (case.flags.broker, case.flags.is_credential_withheld) = (Some("https://c.example".to_owned()), true);
        let Credential::Missing(reason) = case.select().unwrap().credential else { panic!("there is no key") };
        assert!(reason.starts_with("the key in the variables is for the broker of SINDRI_BROKER"), "{reason}");
        case.flags.broker = Some(A.to_owned());
        assert!(matches!(case.select().unwrap().credential, Credential::Key(_)));
    }

    #[test]
    fn without_a_context_there_is_a_default_broker() {
        let settings = Settings::select(&Flags::default(), None).unwrap();
        assert_eq!((settings.broker.as_str(), settings.token_file), (BROKER_DEFAULT, None));
    }
}
