//! One context: a broker, and the key for it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Limit on the length of a name, which becomes part of a file name.
const NAME_CHARS_MAX: usize = 64;

/// An access key that is never shown.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A broker and the key for it. Without a key and a file of it, the token of `sindri login` is used.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// URL of the broker.
    pub broker: String,
    /// Certificate authorities for the broker's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_ca_file: Option<PathBuf>,
    /// File with the access key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Access key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
}

impl Context {
    /// Describes the credential without showing it.
    pub(crate) fn describe_credential(&self) -> String {
        match (&self.key, &self.key_file) {
            (Some(_), _) => "key".to_owned(),
            (None, Some(path)) => format!("key file {}", path.display()),
            (None, None) => "login".to_owned(),
        }
    }
}

/// Checks that a name is short and consists of letters, digits, `-`, `_` and `.`, and begins with a letter or a digit.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let is_valid = name.chars().count() <= NAME_CHARS_MAX
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character));
    if is_valid {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{name:?} is not the name of a context: it must begin with a letter or a digit, and consist of at most \
         {NAME_CHARS_MAX} letters, digits, hyphens, underscores and dots"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_as_the_name_of_a_file() {
        for name in ["prod", "eu-west.1_b", "1", &"a".repeat(NAME_CHARS_MAX)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../a", "a/b", "-a", "a b", "ä", "a\n", &"a".repeat(NAME_CHARS_MAX + 1)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_key_is_not_in_debug_output() {
        let key = Some(Secret("brokkr_BRabcdef_secret".to_owned()));
        let context = Context { broker: "http://a".to_owned(), broker_ca_file: None, key_file: None, key };
        assert!(!format!("{context:?} {}", context.describe_credential()).contains("secret"));
    }
}
