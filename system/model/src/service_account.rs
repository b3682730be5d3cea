//! ServiceAccount that the agent impersonates for the writes of a stack.

use std::fmt;
use std::str::FromStr;

/// Longest name of a ServiceAccount or a namespace.
const NAME_CHARS_MAX: usize = 253;

/// A ServiceAccount of the cluster, written as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    namespace: String,
    name: String,
}

impl ServiceAccount {
    /// Returns the name of the user that the API server knows it by. The server adds its groups.
    pub fn to_user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl FromStr for ServiceAccount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if is_name(namespace) && is_name(name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!("{text:?} is not the namespace and the name of a ServiceAccount, such as shop/deployer")),
        }
    }
}

impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn is_name(text: &str) -> bool {
    let is_character = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.chars().all(is_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_has_a_namespace_and_a_name() {
        let account: ServiceAccount = "shop/deployer".parse().unwrap();
        assert_eq!(
            (account.to_user().as_str(), account.to_string().as_str()),
            ("system:serviceaccount:shop:deployer", "shop/deployer")
        );
        for invalid in ["", "deployer", "/deployer", "shop/", "shop/a/b", "shop/a:b", "shop/a\r\nHost: b"] {
            assert!(invalid.parse::<ServiceAccount>().is_err(), "{invalid:?}");
        }
    }
}
